package boards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/browser"
)

// drawer is a browser that draws dashboards.
type drawer struct{ *browser.Browser }

// shot says what to draw.
type shot struct {
	// file is the path of the dashboard below the directory of dashboards.
	file string
	// open are the beginnings of the titles of collapsed rows that are drawn open.
	open       []string
	start, end time.Time
	variables  map[string]string
	width      int
}

// seen is what stands on the page.
type seen struct {
	Height int     `json:"height"`
	Panels []panel `json:"panels"`
	// Failed is the text of errors outside of panels.
	Failed []string `json:"failed"`
	Rows   []row    `json:"rows"`
}

// row is the title of a group of panels.
type row struct {
	Title string `json:"title"`
	Top   int    `json:"top"`
}

// panel is one drawn panel.
type panel struct {
	Title  string `json:"title"`
	Top    int    `json:"top"`
	Bottom int    `json:"bottom"`
	// Empty: the panel says that there is no data.
	Empty bool `json:"empty"`
	// Errors are its error messages; Cut are the texts that do not fit.
	Errors []string `json:"errors"`
	Cut    []string `json:"cut"`
	Text   string   `json:"text"`
}

// look reads the page. Perses marks panels with a data attribute only.
const look = `(() => {
  const shown = (e) => e.offsetParent !== null;
  const cut = (root) => [...root.querySelectorAll('h2,h3,h4,h5,h6,p,span,td,th,div')].filter((e) =>
    shown(e) && e.children.length === 0 && e.textContent.trim() !== '' && e.scrollWidth > e.clientWidth + 1 &&
    ['hidden', 'clip'].includes(getComputedStyle(e).overflowX)).map((e) => e.textContent.trim());
  const cards = [...document.querySelectorAll('[data-testid="panel"]')].filter(shown);
  let bottom = 0;
  const panels = cards.map((card) => {
    bottom = Math.max(bottom, card.getBoundingClientRect().bottom);
    const text = card.innerText.trim();
    return {
      top: Math.floor(card.getBoundingClientRect().top),
      bottom: Math.ceil(card.getBoundingClientRect().bottom),
      title: (card.querySelector('h2,h3,h4,h5,h6')?.innerText ?? '').trim(),
      empty: /\bNo data\b/i.test(text) || (card.querySelector('canvas, table, [data-testid="stat"]') === null && text.split('\n').length < 2),
      errors: [...card.querySelectorAll('[role="alert"]')].map((e) => e.innerText.trim()),
      cut: cut(card).concat([...card.querySelectorAll('*')].filter((e) => shown(e) && e.scrollHeight > e.clientHeight + 2 &&
        e.clientHeight > 0 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowY)).map((e) => 'more below: ' + e.innerText.trim().slice(-40)))
        .concat([...card.querySelectorAll('*')].filter((e) => shown(e) && e.scrollWidth > e.clientWidth + 2 &&
        e.clientWidth > 0 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).map((e) => 'more to the right: ' + e.innerText.trim().slice(0, 40))),
      text: text,
    };
  });
  return {
    height: Math.ceil(bottom),
    panels: panels,
    failed: [...document.querySelectorAll('[role="alert"]')].filter((e) => !cards.some((c) => c.contains(e))).map((e) => e.innerText.trim())
      .concat(document.body.textContent.startsWith('ERROR') ? [document.body.textContent] : []),
    rows: [...document.querySelectorAll('[data-testid="panel-group-header"]')].map((e) => ({ title: e.innerText.trim(), top: Math.floor(e.getBoundingClientRect().top) })),
  };
})`

// settled is true when fonts are there and nothing shows that it still waits.
const settled = `document.fonts.status === 'loaded' && document.querySelectorAll('[data-testid="panel"]').length > 0 &&
  document.querySelectorAll('[role="progressbar"], .MuiSkeleton-root, .MuiCircularProgress-root').length === 0 || document.body.textContent.startsWith('ERROR')`

// tall is the height of the page while panels load: Perses loads only what is in view.
const tall = 6000

// screen is how much of a page is in one picture.
const screen = 900

// screens cuts a page into screens of whole panels and returns where each begins and ends. The first
// one begins at the row whose title has the words; without words it begins at the top.
func (p *seen) screens(words string) (cut [][2]int) {
	from := 0
	if i := slices.IndexFunc(p.Rows, func(r row) bool { return strings.Contains(r.Title, words) }); words != "" && i >= 0 {
		from = p.Rows[i].Top
	}
	const never = math.MaxInt
	for {
		// The first row of panels is on the screen; the next one is where a panel does not fit.
		first, next, to := never, never, 0
		for _, panel := range p.Panels {
			if panel.Top >= from {
				first = min(first, panel.Top)
			}
		}
		for _, panel := range p.Panels {
			if panel.Top > first && panel.Bottom > from+screen {
				next = min(next, panel.Top)
			}
		}
		for _, panel := range p.Panels {
			if panel.Top >= first && panel.Top < next {
				to = max(to, panel.Bottom)
			}
		}
		if to == 0 {
			return cut
		}
		const margin = 8
		cut, from = append(cut, [2]int{from, to + margin}), to
	}
}

// draw shows a dashboard of a site and returns what stands on it.
func (b *drawer) draw(ctx context.Context, s *site, at string, what shot) (page seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	query := url.Values{
		"board": {what.file},
		"start": {strconv.FormatInt(what.start.UnixMilli(), 10)},
		"end":   {strconv.FormatInt(what.end.UnixMilli(), 10)},
	}
	query["open"] = what.open
	for name, value := range what.variables {
		query.Set("var-"+name, value)
	}
	if err := b.Size(ctx, what.width, tall, 1); err != nil {
		return page, err
	}
	if err := b.Call(ctx, "Page.navigate", map[string]any{"url": at + "/?" + query.Encode()}, nil); err != nil {
		return page, err
	}
	if err := b.wait(ctx, s); err != nil {
		return page, err
	}
	if err := b.Evaluate(ctx, look+"()", &page); err != nil {
		return page, err
	}
	if page.Height == 0 {
		return page, fmt.Errorf("no panel was drawn: %q", page.Failed)
	}
	return page, errors.Join(b.Size(ctx, what.width, min(page.Height+16, tall), 1), b.wait(ctx, s))
}

// wait returns when the page shows everything: no request for a second, nothing that loads.
func (b *drawer) wait(ctx context.Context, s *site) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for still := 0; still < 5; {
		select {
		case <-ctx.Done():
			var text string
			_ = b.Evaluate(context.WithoutCancel(ctx), "document.body.innerText.slice(0, 500)", &text)
			return fmt.Errorf("the page did not become still; it shows %q: %w", text, ctx.Err())
		case <-tick.C:
		}
		var ready bool
		if err := b.Evaluate(ctx, settled, &ready); err != nil {
			return err
		}
		still++
		if !ready || !s.quiet(time.Second) {
			still = 0
		}
	}
	return nil
}
