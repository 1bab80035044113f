package fleetpage

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages are those of an incident: the slow engine, the hung one, one that was never read, and a pool.
var pages = map[string]string{
	"all": "/", "slow": "/engines/0000000000000003", "hung": "/engines/000000000000000a", "never": "/engines/0000000000001000",
	"pool": "/pools/ffffffffffffffff", "gone": "/engines/none",
}

// openIncident opens a browser and starts the extension in the middle of an incident.
func openIncident(t *testing.T) (*tab, served) {
	t.Helper()
	p, s := open(t), incident()
	at := serve(t, s, "")
	t.Cleanup(func() { require.NoError(t, at.Shutdown(context.WithoutCancel(t.Context()))) })
	at.incidentHour(s)
	return p, at
}

// Everything fits a phone, a tablet and a screen, in the dark and in the light.
func TestEveryPageFits(t *testing.T) {
	p, at := openIncident(t)
	backgrounds := map[string]bool{}
	for name, path := range pages {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{390, 768, 1221, 1400} {
				p.size(width, 4000) // A row out of sight has no size.
				p.scheme(scheme)
				p.visit(at.url + path)
				assert.LessOrEqual(t, look[int](p, "document.documentElement.scrollWidth"), width, "%s is wider than %d", name, width)
				assert.Empty(t, look[[]string](p, `[...document.querySelectorAll('main *')].filter(e => {
					const row = e.closest('tr') ?? document.body; // What is outside of its row is cut off.
					return e.getBoundingClientRect().right > row.getBoundingClientRect().right + 1;
				}).map(e => e.outerHTML.slice(0, 100))`), "%s, %d", name, width)
				backgrounds[scheme+look[string](p, "getComputedStyle(document.body).backgroundColor")] = true
				p.keepLook(name + "-" + scheme + "-" + map[int]string{390: "phone", 768: "tablet", 1221: "laptop", 1400: "screen"}[width])
			}
		}
	}
	assert.Len(t, backgrounds, 2, "dark and light differ: %v", backgrounds)
	p.allowed()
}

// What axe-core finds wrong, a screen reader or a person with poor sight stumbles over.
func TestThePagesAreAccessible(t *testing.T) {
	if *axe == "" {
		t.Skip("make page checks it with axe-core")
	}
	source, err := os.ReadFile(*axe)
	require.NoError(t, err)
	p, at := openIncident(t)
	for name, path := range pages {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{390, 1400} {
				p.size(width, 844)
				p.scheme(scheme)
				p.visit(at.url + path)
				require.NoError(t, p.Evaluate(t.Context(), string(source)+"; 0", nil))
				found := look[struct{ Bad, Unsure, Passed []string }](p, `axe.run(document, { resultTypes: ['violations', 'incomplete'] }).then(r => {
					const say = rules => rules.map(rule => rule.id + ': ' + rule.help + ' ' + rule.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary).join('; '));
					return { Bad: say(r.violations), Unsure: say(r.incomplete), Passed: r.passes.map(rule => rule.id) };
				})`)
				assert.Empty(t, found.Bad, "%s, %s, %d", name, scheme, width)
				assert.Empty(t, found.Unsure, "%s, %s, %d", name, scheme, width)
				assert.Contains(t, found.Passed, "color-contrast")
				assert.Equal(t, 1, look[int](p, "document.querySelectorAll('h1').length"))
			}
		}
	}

	// Its rows are grids, and still those of a table for those who hear it.
	p.visit(at.url + "/")
	var tree struct {
		Nodes []struct {
			Role struct{ Value string }
		}
	}
	require.NoError(t, p.Call(t.Context(), "Accessibility.getFullAXTree", nil, &tree))
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		roles[n.Role.Value]++
	}
	// 14 rows, with those of the budgets two more, and two of headers.
	assert.Equal(t, []int{2, 18, 15, 16}, []int{roles["table"], roles["row"], roles["columnheader"], roles["rowheader"]}, "%v", roles)
}

// hostile are what a server can call itself, and an address of the configuration can be.
const hostile = `<script>document.title='hacked'</script><img src=x onerror="document.title='hacked'">"'` + "`" + `{{.}}</td></table>`

// What servers say of themselves is text and nothing else. The policy of the page forbids the rest.
func TestWhatServersCallThemselvesIsInert(t *testing.T) {
	p, s := open(t), newScript(4)
	e := &s.engines[1]
	e.Server, e.Model, e.Engine, e.Version, e.Node, e.Address, e.Failure = hostile, hostile, hostile, hostile, hostile, hostile, hostile
	e.Cause, e.Detail, e.Condition = hostile, hostile, hostile
	s.pools[0].Name = hostile
	at := serve(t, s, "")
	t.Cleanup(func() { require.NoError(t, at.Shutdown(context.WithoutCancel(t.Context()))) })
	for _, path := range []string{"/", "/engines/" + e.Key, "/pools/" + s.pools[0].Key} {
		p.visit(at.url + path)
		p.until("document.querySelector('main').innerText.includes('<img src=x')")
		look[any](p, "refresh()") // What the script of the page makes of it.
		assert.NotContains(t, look[string](p, "document.title + ' '"), "hacked -")
		assert.NotEqual(t, "hacked", look[string](p, "document.title"))
		assert.Zero(t, look[int](p, "document.querySelectorAll('img, body script, a[href^=javascript]').length"))
		p.allowed()
	}
	assert.Equal(t, 5, func() int { p.visit(at.url + "/"); return look[int](p, "document.querySelectorAll('#rows tr').length") }())

	look[any](p, `document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = "hacked"' }))`)
	p.until("forbidden.length > 0")
	assert.NotEqual(t, "hacked", look[string](p, "document.title"), "the policy forbids scripts that are not the page's own")
}

// The picture of the README, written by make page DRAW=1.
func TestThePictureOfTheReadme(t *testing.T) {
	if *images == "" {
		t.Skip("make page DRAW=1 draws the picture")
	}
	p, at := openIncident(t)
	p.size(1280, 800)
	p.scheme("light")
	p.visit(at.url + "/")
	// The last row is whole.
	last := look[float64](p, "Math.max(...[...document.querySelectorAll('#rows tr')].map(r => r.getBoundingClientRect().bottom).filter(b => b <= 760))")
	picture, err := p.Picture(t.Context(), 1280, [2]int{0, int(last)}, "webp")
	require.NoError(t, err)
	assert.Less(t, len(picture), 120_000, "a repository must bear it")
	require.NoError(t, os.WriteFile(filepath.Join(*images, "vllm-fleet.webp"), picture, 0o600))
}
