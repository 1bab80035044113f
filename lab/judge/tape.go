package judge

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A tape has all that the processor was given in a story, and what is true of it. Replaying
// it gives the diagnosis of another processor on the same story without simulating the
// servers again, which takes most of the time.

// tapeHeader begins a tape.
type tapeHeader struct {
	Name string
	// Processor has the processor's settings as JSON.
	Processor []byte
	Servers   int
}

// tapeEvent is what happened. The last one ends the tape.
type tapeEvent struct {
	Kind tapeKind
	// Server and At, in seconds, are of scrapes and of the time; Minute is that which ends.
	Server, Minute int
	At             float64
	// Metrics are those of a scrape, in protobuf. Truth ends the tape.
	Metrics []byte
	Truth   *tapeTruth
}

type tapeKind uint8

const (
	tapeAdvance tapeKind = iota
	tapeScrape
	tapeMinute
	tapeEnd
)

// tapeTruth is what is true, by line.
type tapeTruth struct {
	Felt   [][]Felt
	Lines  []tapeLine
	Sought []Sought
	Window time.Duration
	Notes  []string
}

// tapeLine is what is true of a minute of a server.
type tapeLine struct {
	Requests              int
	Effect                float64
	Causes                map[string]float64
	Also                  []string
	Harmful, Open, Missed bool
	Slow                  bool
	Unended               float64
}

// tape writes.
type tape struct {
	to  *gob.Encoder
	err error
}

// PlayTaped plays a story as Play does, and writes its tape.
func PlayTaped(ctx context.Context, story *Story, to io.Writer) (*Played, error) {
	packed, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	played, err := play(ctx, story, &tape{to: gob.NewEncoder(packed)})
	return played, errors.Join(err, packed.Close())
}

func (t *tape) put(what any) {
	if t.err == nil {
		t.err = t.to.Encode(what)
	}
}

func (t *tape) begin(s *Story) {
	settings, err := json.Marshal(s.Processor)
	if err != nil {
		panic(err) // They come from YAML.
	}
	t.put(tapeHeader{s.Name, settings, len(s.Servers)})
}

func (t *tape) advance(to float64) { t.put(tapeEvent{Kind: tapeAdvance, At: to}) }

func (t *tape) minute(n int) { t.put(tapeEvent{Kind: tapeMinute, Minute: n}) }

func (t *tape) scraped(_ context.Context, server int, at float64, metrics pmetric.Metrics) error {
	var marshal pmetric.ProtoMarshaler
	data, err := marshal.MarshalMetrics(metrics)
	if err != nil {
		return err
	}
	t.put(tapeEvent{Kind: tapeScrape, Server: server, At: at, Metrics: data})
	return t.err
}

func (t *tape) end(p *Played) error {
	truth := tapeTruth{Felt: p.Felt, Sought: p.Sought, Window: p.Window, Notes: p.Notes}
	for i := range p.Lines {
		l := &p.Lines[i]
		truth.Lines = append(truth.Lines, tapeLine{l.Requests, l.Effect, l.TrueCauses, l.Also, l.Harmful, l.open, l.Missed, l.Slow, l.Unended})
	}
	t.put(tapeEvent{Kind: tapeEnd, Truth: &truth})
	return t.err
}

// Replay returns what Play returns for the story of a tape, with the processor as it is now, or with a method in its
// place where there is one; then nobody reports of pools. Errors say that the tape is not whole, or are the method's.
func Replay(ctx context.Context, from io.Reader, method Method) (*Played, error) {
	unpacked, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()
	in := gob.NewDecoder(unpacked)
	var header tapeHeader
	if err := in.Decode(&header); err != nil {
		return nil, fmt.Errorf("the tape cannot be read: %w", err)
	}
	var settings map[string]any
	if err := json.Unmarshal(header.Processor, &settings); err != nil {
		return nil, fmt.Errorf("the tape cannot be read: %w", err)
	}
	config, err := configure(settings)
	if err != nil {
		return nil, err
	}
	out := &Played{Window: config.Window}
	r := reportsOf(header.Name, header.Servers, out, method)
	if method == nil {
		if r, err = newReports(ctx, header.Name, header.Servers, config, out); err != nil {
			return nil, err
		}
	}
	return out, errors.Join(r.replay(ctx, in), r.close(ctx))
}

func (r *reports) replay(ctx context.Context, in *gob.Decoder) error {
	for {
		var event tapeEvent
		if err := in.Decode(&event); err != nil {
			return fmt.Errorf("the tape ends too early: %w", err)
		}
		switch event.Kind {
		case tapeAdvance:
			r.advance(event.At)
		case tapeMinute:
			r.minute(event.Minute)
		case tapeScrape:
			if err := ctx.Err(); err != nil {
				return err
			}
			var unmarshal pmetric.ProtoUnmarshaler
			metrics, err := unmarshal.UnmarshalMetrics(event.Metrics)
			if err != nil {
				return fmt.Errorf("the tape cannot be read: %w", err)
			}
			if err := r.scraped(ctx, event.Server, event.At, metrics); err != nil {
				return err
			}
		case tapeEnd:
			return r.out.fill(event.Truth)
		}
	}
}

// fill adds what is true.
func (p *Played) fill(truth *tapeTruth) error {
	if truth == nil || len(truth.Lines) != len(p.Lines) {
		return errors.New("the tape does not have what is true of each minute")
	}
	p.Felt, p.Sought, p.Notes = truth.Felt, truth.Sought, truth.Notes
	for i := range p.Lines {
		l, is := &p.Lines[i], &truth.Lines[i]
		l.Requests, l.Effect, l.TrueCauses, l.Also = is.Requests, is.Effect, is.Causes, is.Also
		l.Harmful, l.open, l.Missed, l.Slow, l.Unended = is.Harmful, is.Open, is.Missed, is.Slow, is.Unended
		if l.TrueCauses == nil {
			l.TrueCauses = map[string]float64{}
		}
	}
	return nil
}
