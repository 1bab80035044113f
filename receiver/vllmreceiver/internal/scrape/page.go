package scrape

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// page is an answer with a body.
type page struct {
	answer  fetch.Answer
	arrived time.Time
	dialect exposition.Dialect
	// text is the part of the body that can be used.
	text []byte
	// snapshot is nil until the text was read, which took the time parsing.
	snapshot *exposition.Snapshot
	parsing  time.Duration
	// cut is true where the last line was dropped because it is not complete, and open where
	// more lines may be missing.
	cut, open bool
}

// ask fetches the metrics of the target, without reading them. Where a gateway's answer in OpenMetrics takes half of the
// timeout, is a failure, or has lines that cannot be used, it asks for text in the rest of the timeout.
func (s *Target) ask(ctx context.Context, body *bytes.Buffer) (page, error) {
	if !s.exemplars {
		return s.page(ctx, body, false)
	}
	half := ctx
	if s.timeout > 0 {
		var cancel, cancelHalf context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
		half, cancelHalf = context.WithTimeout(ctx, s.timeout/2)
		defer cancelHalf()
	}
	first, err := s.page(half, body, true)
	if err == nil {
		s.read(&first)
	}
	var problem string
	switch {
	case err != nil:
		switch failure := fetch.AsError(err); failure.Outcome {
		case fetch.OutcomeServerError, fetch.OutcomeStatus, fetch.OutcomeNotPrometheus, fetch.OutcomeEmpty,
			fetch.OutcomeReset, fetch.OutcomeTooLarge:
			problem = failure.Message
		case fetch.OutcomeTimeout:
			problem = "there is no answer within half of the timeout"
		default:
			return first, err
		}
	case first.dialect == exposition.DialectText:
		return first, nil
	case first.snapshot.Refused:
		problem = "its series exceed limits::memory"
	case len(first.snapshot.Problems) > 0:
		problem = fmt.Sprintf("line %d has the problem %s", first.snapshot.Problems[0].Line, first.snapshot.Problems[0].Reason)
	case first.snapshot.Duplicates > 0:
		problem = fmt.Sprintf("%d series are there twice", first.snapshot.Duplicates)
	default:
		// Go's library writes a counter without _total as a family without a type, which is a gauge here.
		families := first.snapshot.Layout.Families
		i := slices.IndexFunc(families, func(f exposition.Family) bool { return f.Kind == exposition.KindUntyped && len(f.Series) > 0 })
		if i < 0 {
			return first, nil
		}
		problem = "the type is missing of " + remote.Text(families[i].Name)
	}
	if err == nil {
		// A large body that waits for its place must not hold another.
		first.answer.Release()
	}
	// Also where the text fails: otherwise each scrape of a slow gateway would lose half of its time.
	s.exemplars, s.textOnly = false, true
	text, err := s.page(ctx, body, false)
	if err == nil && text.dialect == exposition.DialectText && s.first("openmetrics") {
		s.logger.Info("The OpenMetrics page of this gateway cannot be used, so the target is scraped in the text format until it restarts. "+
			"No metric is lost, but exemplars are: the text format has none. If the page is invalid, report it to the gateway's project", zap.String("problem", problem))
	}
	return text, err
}

// page asks once.
func (s *Target) page(ctx context.Context, body *bytes.Buffer, exemplars bool) (page, error) {
	answer, err := s.origin.Metrics(ctx, body, exemplars)
	if err != nil {
		return page{}, err
	}
	p := page{answer: answer, arrived: s.now(), dialect: exposition.DialectOf(answer.ContentType), open: answer.Open}
	p.text = body.Bytes()
	if p.open {
		whole, complete := exposition.WholeLines(p.text, p.dialect)
		p.text, p.open = whole, !complete
	}
	p.cut = len(p.text) < body.Len()
	return p, nil
}

// read reads the series of a page.
func (s *Target) read(p *page) {
	began := s.now()
	if fetch.IsLarge(len(p.text)) {
		// Only one large body is parsed at a time.
		s.shared.reading.Lock()
		defer s.shared.reading.Unlock()
	}
	p.snapshot = s.reader.Read(p.text, p.dialect)
	p.parsing = s.now().Sub(began)
}
