package content_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/content/spelling"
)

// Every expression can be written in every spelling.
func TestBoardsHaveAllSpellings(t *testing.T) {
	for _, b := range content.Boards() {
		for _, r := range b.Rows {
			for _, p := range r.Panels {
				for _, q := range p.Queries {
					for _, to := range spelling.All() {
						_, err := spelling.Expr(q.Expr, to)
						assert.NoError(t, err, "%s / %s", b.UID, p.Title)
					}
				}
			}
		}
		for _, a := range b.Annotations {
			_, err := spelling.Expr(a.Expr, spelling.Dotted)
			assert.NoError(t, err, "%s", b.UID)
		}
		for _, v := range b.Variables {
			_, err := spelling.Expr(v.Metric, spelling.Dotted)
			assert.NoError(t, err, "%s", b.UID)
		}
	}
}
