package traffic

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// What one value may be. A year is longer than any trace, and ten million tokens are longer
// than any context.
const (
	maxSeconds = 366 * 86400
	maxTokens  = 10_000_000
)

// builder makes traffic of lines.
type builder struct {
	form    form
	lines   *lineReader
	traffic *engine.Traffic

	fields [][]byte
	// runs is where the runs of the next rows go; a full one stays with the rows that have
	// parts of it.
	runs []engine.BlockRun
	kept int
	size blockSize
	// seen has the place of each conversation, and its last seq.
	seen map[int32]*lastTurn
}

type lastTurn struct{ place, seq int }

func (b *builder) all() error {
	b.size = newBlockSize()
	b.seen = map[int32]*lastTurn{}
	for {
		line, err := b.lines.next()
		if err != nil || line == nil {
			return err
		}
		if b.fields, err = fields(line, b.fields[:0]); err != nil {
			return b.lines.wrong("", "%v", err)
		}
		if len(b.fields) != b.form.width {
			return b.lines.wrong("", "it has %d fields and the header has %d: want the same number", len(b.fields), b.form.width)
		}
		add := b.arrival
		if b.form.closed {
			add = b.turn
		}
		if err := add(); err != nil {
			return err
		}
		if b.kept > b.lines.most.kept {
			return b.lines.wrong("", "the requests up to here take more than %d MB of memory: cut the file into shorter windows", b.lines.most.kept>>20)
		}
	}
}

func (b *builder) arrival() error {
	at, err := b.seconds(arrival)
	if err != nil {
		return err
	}
	all := b.traffic.Arrivals
	if n := len(all); n > 0 && at < all[n-1].At {
		return b.lines.wrong(columnNames[arrival], "%v is before %v in the row above: want the rows in the order of their times", at, all[n-1].At)
	}
	a := engine.Arrival{At: at}
	if a.Prompt, a.Output, a.Prefix, err = b.request(); err != nil {
		return err
	}
	if a.Client, err = b.id(client); err != nil {
		return err
	}
	b.traffic.Arrivals = append(b.traffic.Arrivals, a)
	b.kept += arrivalBytes
	return nil
}

func (b *builder) turn() error {
	id, err := b.id(conversation)
	if err != nil {
		return err
	}
	t := engine.Turn{}
	if t.Think, err = b.seconds(think); err != nil {
		return err
	}
	if t.Prompt, t.Output, t.Prefix, err = b.request(); err != nil {
		return err
	}
	common := int32(0)
	if b.form.at[shared] >= 0 {
		if common, err = b.tokens(shared); err != nil {
			return err
		}
	}
	number := math.MinInt
	if b.form.at[seq] >= 0 {
		n, err := b.id(seq)
		if err != nil {
			return err
		}
		number = int(n)
	}
	last, known := b.seen[id]
	switch {
	case !known:
		last = &lastTurn{place: len(b.traffic.Conversations)}
		b.seen[id] = last
		b.traffic.Conversations = append(b.traffic.Conversations, engine.Conversation{Shared: common})
		b.kept += conversationBytes
	case b.form.at[seq] >= 0 && number <= last.seq:
		return b.lines.wrong(columnNames[seq], "%d does not come after %d of the same conversation: want its turns in their order", number, last.seq)
	}
	last.seq = number
	c := &b.traffic.Conversations[last.place]
	// Only what every turn begins with can be equal in all conversations.
	c.Shared = min(c.Shared, common)
	c.Turns = append(c.Turns, t)
	b.kept += turnBytes
	return nil
}

// request reads what arrivals and turns have in common.
func (b *builder) request() (promptTokens, outputTokens int32, blocks []engine.BlockRun, err error) {
	if promptTokens, err = b.tokens(prompt); err != nil {
		return 0, 0, nil, err
	}
	if outputTokens, err = b.tokens(output); err != nil {
		return 0, 0, nil, err
	}
	// A request that a service counted with nothing was still computed: at least one token.
	promptTokens, outputTokens = max(promptTokens, 1), max(outputTokens, 1)
	if b.form.at[prefix] < 0 {
		return promptTokens, outputTokens, nil, nil
	}
	blocks, err = b.blocks(int(promptTokens))
	return promptTokens, outputTokens, blocks, err
}

// blocks reads the runs of a prompt.
func (b *builder) blocks(promptTokens int) ([]engine.BlockRun, error) {
	const name = "prefix_blocks"
	text := b.fields[b.form.at[prefix]]
	from, total := len(b.runs), 0
	for word := range bytes.FieldsSeq(text) {
		left, right, isRun := bytes.Cut(word, []byte{'-'})
		first, ok := whole(left, math.MaxInt32)
		last := first
		if isRun && ok {
			last, ok = whole(right, math.MaxInt32)
		}
		if !ok || last < first {
			return nil, b.lines.wrong(name, "%s is not a block or a run of blocks: want a number from 0 to %d, or a run such as 4-17", quote(word), math.MaxInt32)
		}
		if total += last - first + 1; total > promptTokens {
			return nil, b.lines.wrong(name, "there are more blocks than the %d tokens of the prompt: want blocks of several tokens each", promptTokens)
		}
		if len(b.runs) == cap(b.runs) {
			// Only the runs of this row move.
			grown := make([]engine.BlockRun, 0, max(1<<12, 2*(len(b.runs)-from)))
			b.runs, from = append(grown, b.runs[from:]...), 0
		}
		b.runs = append(b.runs, engine.BlockRun{First: int32(first), Last: int32(last)})
	}
	runs := b.runs[from:len(b.runs):len(b.runs)]
	b.kept += runBytes * len(runs)
	if !b.size.add(promptTokens, total) {
		return nil, b.lines.wrong(name, "a prompt of %d tokens has %d blocks, which fits no size of blocks that the rows above have: want blocks of one size", promptTokens, total)
	}
	if len(runs) == 0 {
		return nil, nil
	}
	return runs, nil
}

// seconds reads a time or a pause.
func (b *builder) seconds(c column) (float64, error) {
	text := bytes.TrimSpace(b.fields[b.form.at[c]])
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(value >= 0 && value <= maxSeconds) {
		return 0, b.lines.wrong(columnNames[c], "%s is not a time: want seconds since the start of the trace, from 0 to %d", quote(text), maxSeconds)
	}
	return value + 0, nil // -0 becomes 0
}

// tokens reads a length.
func (b *builder) tokens(c column) (int32, error) {
	text := bytes.TrimSpace(b.fields[b.form.at[c]])
	value, ok := whole(text, maxTokens)
	if !ok {
		return 0, b.lines.wrong(columnNames[c], "%s is not a number of tokens: want a whole number from 0 to %d", quote(text), maxTokens)
	}
	return int32(value), nil
}

// id reads a number that only distinguishes; without the column, or empty, it is 0.
func (b *builder) id(c column) (int32, error) {
	if b.form.at[c] < 0 {
		return 0, nil
	}
	text := bytes.TrimSpace(b.fields[b.form.at[c]])
	if len(text) == 0 && c == client {
		return 0, nil
	}
	value, ok := whole(text, math.MaxInt32)
	if !ok {
		return 0, b.lines.wrong(columnNames[c], "%s is not a number: want a whole number from 0 to %d", quote(text), math.MaxInt32)
	}
	return int32(value), nil
}

// whole reads a whole number from 0 to most. Tools that keep numbers as floats write 374.0.
func whole(text []byte, most int) (int, bool) {
	digits, zeros, float := bytes.Cut(text, []byte{'.'})
	if len(digits) == 0 || float && len(bytes.Trim(zeros, "0")) > 0 {
		return 0, false
	}
	value := 0
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		if value = 10*value + int(d-'0'); value > most {
			return 0, false
		}
	}
	return value, true
}

// quote shows the beginning of a text in an error.
func quote(text []byte) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return strconv.Quote(string(text))
}
