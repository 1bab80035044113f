// Package message carries what people read about a change of a diagnosis from the processor, which has found it, to
// the connector, which makes an event of it: as metadata of the metric of the severity, in the batch of the change
// only. Metadata of a metric is not a part of the identity of a series. It goes over OTLP, and exporters for Prometheus
// do not write it.
package message

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// Key is the name of the metadata.
const Key = "vllm.diagnosis.messages"

// Message is what people read about one change.
type Message struct {
	// Attributes are those of the points of the engine or the pool.
	Attributes pcommon.Map
	// At is the time of these points, Since that since which it has been so, both in Unix nanoseconds.
	At, Since int64
	// Of the words, Detail and NotSeparable are not carried.
	wording.Words
	// Board is the address of the dashboard about it; empty where none is known.
	Board string
	// Signals are what the diagnosis was judged by.
	Signals []wording.Signal
}

const (
	// maxText bounds a text in bytes, and maxList the steps, the signals and the attributes of a message.
	maxText = 2 << 10
	maxList = 16
	// maxMessage bounds a message, which the connector keeps for each engine, and maxSize all messages of one metric,
	// in bytes.
	maxMessage = 16 << 10
	maxSize    = 128 << 10
)

// Most is how many messages a metric has at most.
const Most = 64

// Write writes the messages of one batch to the metadata of a metric whose points have a time in Unix nanoseconds.
// Those for which there is no room are left out: their events have no evidence then.
func Write(to pcommon.Map, at int64, all []Message) {
	if len(all) == 0 {
		return
	}
	list, room := to.PutEmptySlice(Key), maxSize
	for i := range all {
		m := &all[i]
		size := m.size()
		if size > min(room, maxMessage) || identity.Size(m.Attributes) > maxText || list.Len() == Most {
			continue
		}
		room -= size
		written := list.AppendEmpty().SetEmptyMap()
		m.Attributes.CopyTo(written.PutEmptyMap("attributes"))
		written.PutInt("at", at)
		written.PutInt("since", m.Since)
		written.PutStr("sentence", m.Sentence)
		written.PutStr("runbook", m.Runbook)
		written.PutStr("board", m.Board)
		next := written.PutEmptySlice("next")
		for _, step := range m.Next {
			next.AppendEmpty().SetStr(step)
		}
		signals := written.PutEmptySlice("signals")
		for _, s := range m.Signals {
			signal := signals.AppendEmpty().SetEmptyMap()
			signal.PutStr("name", s.Name)
			signal.PutDouble("value", s.Value)
			if !math.IsNaN(s.Usual) {
				signal.PutDouble("usual", s.Usual)
			}
		}
	}
}

// size is about what a message takes in a batch, in bytes.
func (m *Message) size() int {
	size := 256 + identity.Size(m.Attributes) + len(m.Sentence) + len(m.Runbook) + len(m.Board)
	for _, step := range m.Next {
		size += 8 + len(step)
	}
	for _, s := range m.Signals {
		size += 64 + len(s.Name)
	}
	return size
}

// Read returns the messages in the metadata of a metric. A sender can write anything there: each text is printable
// and short, and what has another form is left out. The attributes of a message are those of the metadata itself.
func Read(from pcommon.Map) (all []Message) {
	list, has := from.Get(Key)
	if !has {
		return nil
	}
	for _, read := range entries(list, Most) {
		at := field(read, "attributes")
		if at.Type() != pcommon.ValueTypeMap || identity.Size(at.Map()) > maxText {
			continue
		}
		m := Message{Attributes: at.Map(), At: field(read, "at").Int(), Since: field(read, "since").Int(), Board: text(read, "board")}
		m.Sentence, m.Runbook = text(read, "sentence"), text(read, "runbook")
		steps := field(read, "next")
		if steps.Type() == pcommon.ValueTypeSlice {
			for i := range min(steps.Slice().Len(), maxList) {
				m.Next = append(m.Next, wording.Cut(steps.Slice().At(i).Str(), maxText))
			}
		}
		for _, s := range entries(field(read, "signals"), maxList) {
			signal := wording.Signal{Name: text(s, "name"), Value: number(s, "value"), Usual: number(s, "usual")}
			if signal.Name != "" && !math.IsNaN(signal.Value) {
				m.Signals = append(m.Signals, signal)
			}
		}
		if m.Sentence != "" && m.size() <= maxMessage {
			all = append(all, m)
		}
	}
	return all
}

// entries are the maps of a list, at most so many.
func entries(list pcommon.Value, most int) (all []pcommon.Map) {
	if list.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	for i := range min(list.Slice().Len(), most) {
		if entry := list.Slice().At(i); entry.Type() == pcommon.ValueTypeMap {
			all = append(all, entry.Map())
		}
	}
	return all
}

// field returns a value; an empty one where it is missing.
func field(of pcommon.Map, name string) pcommon.Value {
	if value, has := of.Get(name); has {
		return value
	}
	return pcommon.NewValueEmpty()
}

func text(of pcommon.Map, name string) string { return wording.Cut(field(of, name).Str(), maxText) }

func number(of pcommon.Map, name string) float64 {
	value := field(of, name)
	if value.Type() != pcommon.ValueTypeDouble || math.IsInf(value.Double(), 0) {
		return math.NaN()
	}
	return value.Double()
}
