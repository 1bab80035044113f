package traffic

import (
	"bufio"
	"io"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Write writes traffic as a trace that Read reads.
func Write(to io.Writer, t *engine.Traffic) error {
	w := bufio.NewWriter(to)
	if len(t.Conversations) > 0 {
		writeConversations(w, t)
	} else {
		writeArrivals(w, t)
	}
	return w.Flush()
}

func writeArrivals(w *bufio.Writer, t *engine.Traffic) {
	w.WriteString("arrival_s,prompt_tokens,output_tokens,client")
	if t.BlockTokens > 0 {
		w.WriteString(",prefix_blocks")
	}
	w.WriteByte('\n')
	var line []byte
	for i := range t.Arrivals {
		a := &t.Arrivals[i]
		line = strconv.AppendFloat(line[:0], a.At, 'f', -1, 64)
		line = appendInts(line, a.Prompt, a.Output, a.Client)
		if t.BlockTokens > 0 {
			line = appendRuns(append(line, ','), a.Prefix)
		}
		w.Write(append(line, '\n'))
	}
}

func writeConversations(w *bufio.Writer, t *engine.Traffic) {
	w.WriteString("conversation,seq,think_s,prompt_tokens,output_tokens,shared_prefix_tokens")
	if t.BlockTokens > 0 {
		w.WriteString(",prefix_blocks")
	}
	w.WriteByte('\n')
	var line []byte
	for number := range t.Conversations {
		c := &t.Conversations[number]
		for i := range c.Turns {
			turn := &c.Turns[i]
			line = strconv.AppendInt(line[:0], int64(number), 10)
			line = strconv.AppendInt(append(line, ','), int64(i), 10)
			line = strconv.AppendFloat(append(line, ','), turn.Think, 'f', -1, 64)
			line = appendInts(line, turn.Prompt, turn.Output, c.Shared)
			if t.BlockTokens > 0 {
				line = appendRuns(append(line, ','), turn.Prefix)
			}
			w.Write(append(line, '\n'))
		}
	}
}

func appendInts(line []byte, values ...int32) []byte {
	for _, v := range values {
		line = strconv.AppendInt(append(line, ','), int64(v), 10)
	}
	return line
}

func appendRuns(line []byte, runs []engine.BlockRun) []byte {
	for i, r := range runs {
		if i > 0 {
			line = append(line, ' ')
		}
		line = strconv.AppendInt(line, int64(r.First), 10)
		if r.Last > r.First {
			line = strconv.AppendInt(append(line, '-'), int64(r.Last), 10)
		}
	}
	return line
}
