package fleetpage

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/browser"
)

var (
	chromium = flag.String("fleetpage.chromium", "../../../bin/tools/chromium", "directory that Chromium was unpacked to")
	axe      = flag.String("fleetpage.axe", "", "the script of axe-core; without it nothing is said about accessibility")
	looks    = flag.String("fleetpage.png", "", "directory for pictures of what the tests see, to look at them")
	images   = flag.String("fleetpage.images", "", "directory that the picture of the README is written to")
)

// patience is how long a busy machine may take to show what has changed. Usual are some seconds.
const patience = time.Minute

// tab is a page that is open in a browser.
type tab struct {
	*testing.T
	*browser.Browser
}

// open starts a browser, or skips the test where there is none. Its pages report what their policy forbids.
func open(t *testing.T) *tab {
	t.Helper()
	if _, err := os.Stat(*chromium); err != nil {
		t.Skip("there is no Chromium here; make chromium fetches it")
	}
	b, err := browser.Start(t.Context(), *chromium)
	require.NoError(t, err)
	t.Cleanup(b.Stop)
	p := &tab{t, b}
	p.call("Page.enable", nil)
	p.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{
		"source": `window.forbidden = []; document.addEventListener('securitypolicyviolation', e => forbidden.push(e.violatedDirective + ' ' + e.sourceFile + ' ' + e.sample));`,
	})
	p.size(1400, 900)
	return p
}

func (p *tab) call(method string, params map[string]any) {
	p.Helper()
	require.NoError(p, p.Call(p.Context(), method, params, nil))
}

func (p *tab) size(width, height int) {
	p.Helper()
	require.NoError(p, p.Size(p.Context(), width, height, 1))
}

// visit opens an address and waits until it is there.
func (p *tab) visit(url string) {
	p.Helper()
	p.call("Page.navigate", map[string]any{"url": "about:blank"})
	p.until("location.href === 'about:blank'")
	p.call("Page.navigate", map[string]any{"url": url})
	p.until(fmt.Sprintf("location.href === %q && document.readyState === 'complete'", url))
}

// look returns the value of an expression on the page.
func look[V any](p *tab, expression string) (value V) {
	p.Helper()
	require.NoError(p, p.Evaluate(p.Context(), expression, &value), expression)
	return value
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.Helper()
	require.Eventually(p, func() bool {
		var is bool
		return p.Evaluate(p.Context(), "Boolean("+expression+")", &is) == nil && is
	}, patience, 50*time.Millisecond, "%s; the page shows %s", expression, &lateText{p})
}

// lateText is what a page shows when it is printed.
type lateText struct{ *tab }

func (l *lateText) String() string {
	var text string
	_ = l.Evaluate(l.Context(), "document.body.innerText.slice(0, 1500) + ' FOCUS ' + document.activeElement.outerHTML.slice(0, 200)", &text)
	return text
}

// press types keys, one after the other.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		switch key {
		case "Enter":
			down["text"], down["windowsVirtualKeyCode"] = "\r", 13
		case "Tab":
			down["windowsVirtualKeyCode"] = 9
		case "Escape":
			down["windowsVirtualKeyCode"] = 27
		default:
			down["text"] = key
		}
		p.call("Input.dispatchKeyEvent", down)
		p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
	}
}

// scheme chooses dark or light.
func (p *tab) scheme(scheme string) {
	p.Helper()
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// allowed checks that the policy of the page has forbidden nothing.
func (p *tab) allowed() {
	p.Helper()
	assert.Empty(p, look[[]string](p, "forbidden"))
}

// keepLook keeps a picture for people who look at what the test sees.
func (p *tab) keepLook(name string) {
	p.Helper()
	if *looks == "" {
		return
	}
	size := look[[2]int](p, "[innerWidth, Math.min(document.documentElement.scrollHeight, 2000)]")
	p.size(size[0], size[1])
	picture, err := p.Picture(p.Context(), size[0], [2]int{0, size[1]}, "png")
	require.NoError(p, err)
	require.NoError(p, os.WriteFile(filepath.Join(*looks, name+".png"), picture, 0o600))
}
