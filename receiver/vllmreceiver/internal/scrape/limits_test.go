package scrape

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Label values of megabytes, fresh with every scrape: neither memory nor the log
// grows, and the rest of the body is delivered.
func TestFreshLongLabelValuesCostNothing(t *testing.T) {
	r := newRig(t)
	r.scrape(counter("1"))
	before := heap()
	for i := range 20 {
		long := strings.Repeat(string(rune('a'+i)), 2<<20)
		out := r.scrape(counter(fmt.Sprint(i)) + "vllm:prompt_tokens_total{x=\"" + long + "\"} 1\n" +
			"# TYPE " + long + " gauge\n" + long + " 1\n")
		require.Len(t, sums(t, out, "vllm.prompt_tokens"), 1)
	}
	r.body = ""
	assert.Less(t, int64(heap())-int64(before), int64(8<<20))
	log := 0
	for _, entry := range r.logs.All() {
		log += len(entry.Message) + len(fmt.Sprint(entry.ContextMap()))
	}
	assert.Less(t, log, 10_000)
	assert.Equal(t, 1, countLogged(r, "metric name is longer than 512 bytes"))
	assert.Equal(t, 1, countLogged(r, "label value longer than 65536 bytes"))
}

// What vanished is remembered in a few bytes, however long its labels are.
func TestAVanishedSeriesCostsFewBytes(t *testing.T) {
	r := newRig(t)
	r.scrape(counter("1"))
	before := heap()
	for i := range 40 {
		body := counter("1")
		for j := range 25 {
			body += fmt.Sprintf("vllm:prompt_tokens_total{x=\"%d-%d-%s\"} 1\n", i, j, strings.Repeat("x", 20_000))
		}
		r.scrape(body)
	}
	r.scrape(counter("1"))
	r.body = ""
	// A thousand series have vanished, with 20 MB of labels. Three bodies of half a
	// megabyte each may still be known.
	assert.Less(t, int64(heap())-int64(before), int64(6<<20))
}

// 3000 series of a family with a help text of a megabyte end: what is sent is small.
func TestEndsOfAFamilyWithALongHelpAreSmall(t *testing.T) {
	r := newRig(t)
	var body strings.Builder
	body.WriteString("# HELP vllm:my_things_total " + strings.Repeat("x", 1<<20) + "\n# TYPE vllm:my_things_total counter\n")
	for i := range 3000 {
		fmt.Fprintf(&body, "vllm:my_things_total{x=\"%d\"} 1\n", i)
	}
	sizer := pmetric.ProtoMarshaler{}
	live := r.scrape(body.String())
	assert.Less(t, sizer.MetricsSize(live), 1<<20)
	ends := r.fail(500)
	assert.Len(t, points(ends, "vllm.my_things"), 3000)
	assert.Less(t, sizer.MetricsSize(ends), 1<<20)
}

// A body for which there is no room is a failed scrape with a clear reason. Series that
// return later have an unknown start.
func TestABodyWithoutRoomIsDropped(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Limits.Memory = 10 << 20 })
	r.scrape(counter("5"))
	var body strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&body, "a%d 1\n", i)
	}
	out := r.scrape(body.String())
	assert.True(t, sums(t, out, "vllm.prompt_tokens")["0"].Flags().NoRecordedValue())
	assert.Equal(t, 1, countLogged(r, "those of the other targets exceed limits::memory"))
	back := sums(t, r.scrape(counter("6")), "vllm.prompt_tokens")["0"]
	assert.Equal(t, back.Timestamp(), back.StartTimestamp())
}

// A line of the log names a few families only, and those not in full.
func TestTheLogNamesFewFamilies(t *testing.T) {
	r := newRig(t)
	body := ""
	for i := range 900 {
		body += fmt.Sprintf("vllm:%s_%d 1\n", strings.Repeat("x", 450), i)
	}
	r.scrape(counter("1") + body)
	for _, entry := range r.logs.All() {
		assert.Less(t, len(fmt.Sprint(entry.ContextMap())), 10_000, entry.Message)
	}
}
