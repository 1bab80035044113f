package fleetpage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// started opens the page of a script.
func started(t *testing.T, s *script) *tab {
	t.Helper()
	p, at := open(t), serve(t, s, "")
	t.Cleanup(func() { require.NoError(t, at.Shutdown(context.WithoutCancel(t.Context()))) })
	p.visit(at.url + "/")
	return p
}

const shownNames = `[...document.querySelectorAll('#rows tr:not([hidden])')].map(r => r.querySelector('a').textContent)`

// values are what the engines have in a column, from above.
func values(column int) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#rows tr')].map(r => r.children[%d].dataset.sort).filter(t => t !== '').map(Number)`, column)
}

// A thousand engines with an hour of curves are usable within a second. The limit of the test is that of a busy machine;
// what it prints is the best of three.
func TestAThousandEnginesAreUsable(t *testing.T) {
	s := newScript(1000)
	p, at := open(t), serve(t, s, "")
	t.Cleanup(func() { require.NoError(t, at.Shutdown(context.WithoutCancel(t.Context()))) })
	at.hour(s, nil)
	p.visit(at.url + "/")
	require.Equal(t, 1001, look[int](p, "document.querySelectorAll('#rows tr').length"))
	const limit = 10_000 // Milliseconds.
	took := map[string]float64{}
	best := func(what string, ms float64) {
		if last, has := took[what]; !has || ms < last {
			took[what] = ms
		}
	}
	for range 3 {
		p.visit(at.url + "/")
		best("load and first paint", look[float64](p, `(async () => {
		const paint = performance.getEntriesByName('first-contentful-paint')[0] ?? await new Promise(r => new PerformanceObserver(l => r(l.getEntries()[0])).observe({ type: 'paint', buffered: true }));
		return Math.max(paint.startTime, performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd);
	})()`))
	}
	measure := func(what, act string) {
		t.Helper()
		best(what, look[float64](p, `(async () => {
			const from = performance.now();
			`+act+`
			await new Promise(r => requestAnimationFrame(() => setTimeout(r)));
			return performance.now() - from;
		})()`))
	}
	for range 3 {
		measure("filter", `const f = document.querySelector('#filter'); f.value = 'gpu-99'; f.dispatchEvent(new Event('input'));`)
		assert.Equal(t, 11, look[int](p, shownNames+".length"), "99 and 990 to 999")
		assert.Equal(t, "11 of 1001", look[string](p, "document.querySelector('#shown').textContent"))
		measure("without filter", `const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input'));`)
		measure("sort by KV cache", `document.querySelectorAll('#fleet thead button')[6].click();`)
		sorted := look[[]float64](p, values(6))
		assert.Len(t, sorted, 1000)
		assert.IsNonIncreasing(t, sorted)
		measure("sort by name", `document.querySelectorAll('#fleet thead button')[0].click();`)
		assert.Equal(t, []string{"gpu-0:8000, engine 0", "gpu-1:8000, engine 0", "gpu-2:8000, engine 0"}, look[[]string](p, shownNames)[:3])
		look[any](p, `(async () => { while (asking) await new Promise(r => setTimeout(r, 20)); clearTimeout(timer); })()`)
		before := look[float64](p, "Number("+rowOf(s, 500)+".children[4].dataset.sort)")
		s.mu.Lock()
		for i := range s.engines {
			s.engines[i].Numbers[fleet.Running]++
		}
		s.mu.Unlock()
		time.Sleep(1100 * time.Millisecond) // For a second a snapshot is used again.
		measure("refresh with news of all", `await refresh();`)
		assert.InDelta(t, before+1, look[float64](p, "Number("+rowOf(s, 500)+".children[4].dataset.sort)"), 0.1)
	}
	for what, ms := range took {
		t.Logf("1,000 engines, %s: %.0f ms", what, ms)
		assert.Less(t, ms, float64(limit), what)
	}
}

// All that a mouse does, a keyboard does.
func TestTheKeyboardIsEnough(t *testing.T) {
	s := newScript(30)
	p := started(t, s)
	focus := func() string {
		return look[string](p, "document.activeElement.id || document.activeElement.textContent")
	}
	p.press("Tab")
	assert.Equal(t, "filter", focus())
	for _, header := range []string{"Name", "Condition", "Cause", "For", "Running", "Waiting", "KV cache", "TTFT", "ITL", "Data age"} {
		p.press("Tab")
		assert.Equal(t, header, focus())
	}
	p.press("Tab")
	assert.Equal(t, look[[]string](p, shownNames)[0], focus(), "after the headers come the rows")

	p.press("j")
	assert.Equal(t, look[[]string](p, shownNames)[1], focus())
	p.press("k", "k", "k")
	assert.Equal(t, look[[]string](p, shownNames)[0], focus(), "there is nothing above the first row")

	p.press("/")
	assert.Equal(t, "filter", focus())
	p.press("g", "p", "u", "-", "2")
	p.until(shownNames + ".length === 11")
	assert.Equal(t, "gpu-2", look[string](p, "document.querySelector('#filter').value"), "the slash is not in the filter")
	p.press("Enter", "j")
	assert.Equal(t, "gpu-21:8000, engine 0", focus())
	p.press("Enter")
	p.until("location.pathname === '/engines/" + s.engines[21].Key + "' && document.querySelector('h1')?.textContent === 'gpu-21:8000, engine 0' && document.readyState === 'complete'")
	p.press("Escape")
	p.until("location.pathname === '/' && document.readyState === 'complete'")
	p.until("document.activeElement.textContent === 'gpu-21:8000, engine 0'")
	assert.Equal(t, 11, look[int](p, shownNames+".length"), "the filter is still there")

	p.press("/", "Escape")
	assert.Len(t, look[[]string](p, shownNames), 31, "Escape clears the filter")
	look[any](p, "document.querySelectorAll('#fleet thead button')[7].focus()")
	p.press("Enter")
	assert.Equal(t, "descending", look[string](p, "document.activeElement.closest('th').ariaSort"))
	p.press("Enter")
	assert.Equal(t, "ascending", look[string](p, "document.activeElement.closest('th').ariaSort"))
	assert.Equal(t, 1, look[int](p, "document.querySelectorAll('#fleet th[aria-sort=ascending], #fleet th[aria-sort=descending]').length"))
	assert.IsNonDecreasing(t, look[[]float64](p, values(7)))
	p.allowed()
}

// While the collector is away the page says so, and shows what it last knew. It recovers by itself.
func TestThePageSaysThatTheCollectorIsAway(t *testing.T) {
	p, s := open(t), newScript(3)
	at := serve(t, s, "")
	p.visit(at.url + "/")
	require.NoError(t, at.Shutdown(t.Context()))
	p.until("document.querySelector('#lost').textContent.startsWith('The collector does not answer. What is shown was so at ')")
	assert.Equal(t, 4, look[int](p, "document.querySelectorAll('#rows tr').length"))
	then := look[string](p, "document.querySelector('#state').textContent")
	p.keepLook("away")

	back := serve(t, s, at.url[len("http://"):])
	t.Cleanup(func() { require.NoError(t, back.Shutdown(context.WithoutCancel(t.Context()))) })
	p.until("document.querySelector('#lost').textContent === ''")
	p.until(fmt.Sprintf("document.querySelector('#state').textContent !== %q", then))

	// An engine that is not known any more is not a collector that is away.
	p.visit(back.url + "/engines/" + s.engines[0].Key)
	s.mu.Lock()
	s.engines = s.engines[1:]
	s.mu.Unlock()
	p.until("document.querySelector('#lost').textContent.startsWith('No processor knows this any more.')")
}
