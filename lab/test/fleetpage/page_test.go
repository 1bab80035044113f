package fleetpage

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rowOf finds the row of an engine by its place in the script.
func rowOf(s *script, i int) string {
	return "document.querySelector('#rows [data-key=\"vllm " + s.engines[i].Key + "\"]')"
}

// An incident is seen on the open page from its start to its end. Nobody reloads, and who looks at another row does
// not lose it.
func TestAnIncidentIsSeenOnTheOpenPage(t *testing.T) {
	p, s := open(t), newScript(60)
	at := serve(t, s, "")
	t.Cleanup(func() { require.NoError(t, at.Shutdown(context.WithoutCancel(t.Context()))) })
	p.visit(at.url + "/")
	require.Equal(t, "60 healthy", look[string](p, "document.querySelector('#counts').innerText"))

	// The reader has scrolled and has the focus on a row; the incident is further down.
	look[any](p, `(() => {
		window.sick = `+rowOf(s, 55)+`; window.read = `+rowOf(s, 30)+`.querySelector('a'); window.same = true;
		read.focus();
		window.lostRows = 0;
		new MutationObserver(list => list.forEach(m => m.removedNodes.forEach(n => { if (n.nodeName === 'TR' && !n.isConnected) lostRows++; })))
			.observe(document.querySelector('#rows'), { childList: true });
	})()`)
	p.until("scrollY > 100")
	before := look[float64](p, "read.getBoundingClientRect().top")
	shows := func(condition, cause string) {
		t.Helper()
		p.until("sick.children[1].innerText.trim() === '" + condition + "' && sick.children[2].innerText.trim() === '" + cause + "'")
		assert.True(t, look[bool](p, "same && sick === "+rowOf(s, 55)), "the page was not reloaded, and the row is the same")
		assert.True(t, look[bool](p, "document.activeElement === read"), "the focus stays")
		assert.InDelta(t, before, look[float64](p, "read.getBoundingClientRect().top"), 3, "what is read does not move")
		assert.Zero(t, look[int](p, "lostRows"))
	}

	s.become(s.engines[55].Key, "degraded", "")
	shows("degraded", "")
	s.become(s.engines[55].Key, "stalled", "")
	shows("stalled", "")
	s.become(s.engines[55].Key, "degraded", "slow_steps")
	shows("degraded", "slow_steps")
	assert.True(t, look[bool](p, "document.querySelector('#rows').firstElementChild === sick"), "the worst is the first")
	assert.Equal(t, "1 degraded 59 healthy", strings.Join(strings.Fields(look[string](p, "document.querySelector('#counts').innerText")), " "))
	assert.Equal(t, "1 degraded - vLLM fleet", look[string](p, "document.title"))
	s.become(s.engines[55].Key, "healthy", "")
	shows("healthy", "")

	// A row that has the focus keeps it where it goes.
	look[any](p, "sick.querySelector('a').focus()")
	s.become(s.engines[55].Key, "stalled", "")
	p.until("document.querySelector('#rows').firstElementChild === sick")
	assert.True(t, look[bool](p, "sick.contains(document.activeElement)"))

	// What was not there when the page was opened comes too.
	require.False(t, look[bool](p, "Boolean(document.querySelector('#budgets table')) || document.querySelector('#suspect').textContent !== ''"))
	s.mu.Lock()
	s.budgets = incident().budgets
	for i := range 40 {
		s.engines[i].Diagnosis = diagnosis("unreachable", "", 0)
	}
	s.mu.Unlock()
	p.until("document.querySelectorAll('#budgets tbody tr').length === 2 && document.querySelector('#suspect').innerText.startsWith('Most servers cannot be read')")
	p.allowed()
}
