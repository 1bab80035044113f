package faults

import (
	"fmt"
	"strings"
	"time"
)

// sizeFaults are servers with very large contents. Bodies stay just below the receiver's
// default limit.
func sizeFaults() []Fault {
	began := time.Now().Add(-time.Hour).Unix()
	// adding appends lines to a working page, so that the target is a vLLM server.
	adding := func(lines func(w *World, n int64, add func(format string, args ...any))) func(*World) (Given, error) {
		return func(w *World) (Given, error) {
			return pages(func(n int64) page {
				var b strings.Builder
				b.WriteString(body(began, n))
				lines(w, n, func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
				return page{body: b.String()}
			})(w)
		}
	}
	const many = 50_000
	// A line may have 1 MiB.
	letters := strings.Repeat("x", 1_000_000)
	// The ends of 3000 series would hold 270 MB of HELP, which the queue of the agent
	// still takes, or 3 GB, which it does not.
	ending := func(name string, length int) Fault {
		return Fault{
			Name: name, What: "3000 series of its family that are there in every second scrape", Heavy: true, Short: length < 100_000,
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				if n%2 == 0 {
					return
				}
				add("# HELP vllm:odd %s\n# TYPE vllm:odd gauge\n", letters[:length])
				for i := range 3000 {
					add("vllm:odd{a=\"%d\"} 1\n", i)
				}
			}),
		}
	}
	return []Fault{
		ending("HELP of 90 KB, series that end", 90_000),
		ending("HELP of 1 MB, series that end", 1_000_000),
		{
			Name: "50,000 models", What: "50,000 values of model_name in one gauge", Heavy: true, Short: true, Says: says("model|series"),
			Begin: adding(func(_ *World, _ int64, add func(string, ...any)) {
				for i := range many {
					add("vllm:num_requests_running{model_name=\"model-%d\"} 1\n", i)
				}
			}),
		},
		{
			Name: "50,000 new models each scrape", What: "the same, with other names at each scrape", Heavy: true, Says: says("model|series"),
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				for i := range many {
					add("vllm:num_requests_running{model_name=\"model-%d-%d\"} 1\n", n, i)
				}
			}),
		},
		{
			Name: "50,000 engines", What: "50,000 values of engine in a counter", Heavy: true, Says: says("engine|series"),
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				for i := range many {
					add("vllm:prompt_tokens_total{engine=\"%d\",model_name=\"m\"} %d\n", i+1, n)
				}
			}),
		},
		{
			Name: "new histograms each scrape", What: "4,000 histograms of 12 buckets with other labels at each scrape", Heavy: true, Says: nil,
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				add("# TYPE vllm:odd histogram\n")
				for i := range 4000 {
					for bound := range 12 {
						add("vllm:odd_bucket{a=\"%d-%d\",le=\"%d\"} %d\n", n, i, bound, bound)
					}
					add("vllm:odd_bucket{a=\"%d-%d\",le=\"+Inf\"} 12\nvllm:odd_sum{a=\"%d-%d\"} 1\nvllm:odd_count{a=\"%d-%d\"} 12\n", n, i, n, i, n, i)
				}
			}),
		},
		{
			Name: "short lines of one series", What: "lines of four bytes up to the limit of a body", Heavy: true, Says: says("more than once|large|too_many_lines|lines"),
			Begin: adding(func(w *World, _ int64, add func(string, ...any)) {
				add("%s", strings.Repeat("a 1\n", (w.BodyLimit-4096)/4))
			}),
		},
		{
			Name: "short lines", What: "lines of ten bytes, each a series, up to the limit of a body", Heavy: true, Short: true, Says: says("large|lines|series"),
			Begin: adding(func(w *World, _ int64, add func(string, ...any)) {
				for i := range (w.BodyLimit - 4096) / 10 {
					add("%07x 1\n", i|0xa000000)
				}
			}),
		},
		{
			Name: "body over the limit", What: "short lines, 16 MB of them", Heavy: true, Says: says("large"),
			Begin: adding(func(_ *World, _ int64, add func(string, ...any)) { add("%s", strings.Repeat("a 1\n", 17<<20/4)) }),
		},
		{
			Name: "label values of 1 MB", What: "values that fill the body, other ones at each scrape", Heavy: true, Short: true, Says: says("label|long|large"),
			Begin: adding(func(w *World, n int64, add func(string, ...any)) {
				for i := range (w.BodyLimit - 4096) >> 20 {
					add("vllm:odd{a=\"%d-%d%s\"} 1\n", n, i, letters[100:])
				}
			}),
		},
		{
			Name: "one label value", What: "one value that fills the body, another one at each scrape", Heavy: true, Says: says("label|long|large"),
			Begin: adding(func(w *World, n int64, add func(string, ...any)) {
				add("vllm:odd{a=\"%d%s\"} 1\n", n, strings.Repeat("x", w.BodyLimit-4096))
			}),
		},
		{
			Name: "long names", What: "names of families that fill the body, other ones at each scrape", Heavy: true, Says: says("name|long|large"),
			Begin: adding(func(w *World, n int64, add func(string, ...any)) {
				for i := range (w.BodyLimit - 4096) >> 20 {
					add("vllm:odd_%d_%d%s 1\n", n, i, letters[100:])
				}
			}),
		},
		{
			Name: "long label names", What: "names of labels that fill the body, other ones at each scrape", Heavy: true, Says: says("label|long|large"),
			Begin: adding(func(w *World, n int64, add func(string, ...any)) {
				for i := range (w.BodyLimit - 4096) >> 20 {
					add("vllm:odd{a_%d_%d%s=\"b\"} 1\n", n, i, letters[100:])
				}
			}),
		},
		{
			Name: "20,000 families", What: "each with TYPE and HELP and another name at each scrape", Heavy: true,
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				for i := range 20_000 {
					add("# HELP vllm:odd_%[1]d_%[2]d Help.\n# TYPE vllm:odd_%[1]d_%[2]d gauge\nvllm:odd_%[1]d_%[2]d 1\n", n, i)
				}
			}),
		},
		{
			Name: "a series of many labels", What: "10,000 labels on each of 10 series", Heavy: true, Says: says("label"),
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				for i := range 10 {
					add("vllm:odd{n=\"%d-%d\"", n, i)
					for label := range 10_000 {
						add(",l%d=\"%d\"", label, label)
					}
					add("} 1\n")
				}
			}),
		},
		{
			Name: "a histogram of many buckets", What: "100,000 bounds", Heavy: true,
			Begin: adding(func(_ *World, _ int64, add func(string, ...any)) {
				add("# TYPE vllm:odd histogram\n")
				for bound := range 100_000 {
					add("vllm:odd_bucket{le=\"%d\"} %d\n", bound, bound)
				}
				add("vllm:odd_bucket{le=\"+Inf\"} 100000\nvllm:odd_sum 1\nvllm:odd_count 100000\n")
			}),
		},
		{
			Name: "new adapters each scrape", What: "5,000 LoRA adapters in one label, other ones at each scrape", Heavy: true, Says: nil,
			Begin: adding(func(_ *World, n int64, add func(string, ...any)) {
				names := make([]string, 5000)
				for i := range names {
					names[i] = fmt.Sprintf("adapter-%d-%d", n, i)
				}
				add("# TYPE vllm:lora_requests_info gauge\nvllm:lora_requests_info{max_lora=\"8\",waiting_lora_adapters=\"\",running_lora_adapters=\"%s\"} %d\n",
					strings.Join(names, ","), time.Now().Unix())
			}),
		},
	}
}
