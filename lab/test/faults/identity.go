package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// identityFaults are servers whose counters are easily misread.
func identityFaults() []Fault {
	hour := int64(3600)
	now := time.Now().Unix()
	const tokens = 2005000
	whole := strings.Replace(body(now-hour, 1), "} 1000\n", fmt.Sprintf("} %d\n", tokens), 1)
	cut := whole[:strings.Index(whole, strconv.Itoa(tokens))+3]
	// A body is whole twice and then cut within its number.
	cutting := func(header func(length int) string) func(*World) (Given, error) {
		return func(w *World) (Given, error) {
			return target(w.Raw(func(_ context.Context, c net.Conn, n int) {
				answer := whole
				if n%3 == 0 {
					answer = cut
				}
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n%s\r\n%s", text, header(len(answer)), answer)
			}))
		}
	}
	return []Fault{
		{
			Name: "cut body", What: "no declared length; every third body ends within a number", Says: says("ended within a line"),
			Check: never(tokens), Begin: cutting(func(int) string { return "" }),
		},
		{
			Name: "restart each scrape", What: "a new process start and small counters at each scrape", Check: increases(func(asked int) float64 { return 1000 * float64(asked) }),
			Begin: pages(func(int64) page { return page{body: body(time.Now().Unix(), 1)} }),
		},
		{
			Name: "two replicas, the older with the smaller counters", What: "one address, two processes in turns; neither counts anything", Says: says("several server processes|load balancer"),
			Check: increases(func(int) float64 { return 0 }), Begin: pages(func(n int64) page {
				if n%2 == 0 {
					return page{body: body(now-2*hour, 1)}
				}
				return page{body: body(now-hour, 7)}
			}),
		},
		{
			Name: "two replicas, the older with the larger counters", What: "the same with the counters the other way round", Says: says("several server processes|load balancer"),
			Check: increases(func(int) float64 { return 0 }), Begin: pages(func(n int64) page {
				if n%2 == 0 {
					return page{body: body(now-2*hour, 7)}
				}
				return page{body: body(now-hour, 1)}
			}),
		},
		{
			Name: "two replicas that count", What: "one address, two processes in turns; each counts 1000 tokens at its scrapes",
			Says: says("several server processes|load balancer"), Check: increases(func(asked int) float64 { return 1000 * float64(asked) }),
			Begin: pages(func(n int64) page { return page{body: body(now-hour*(1+n%2), (1-n%2)*5000+n/2)} }),
		},
		{Name: "a process start in the future", What: "the server's clock is a day ahead", Check: startsBeforeTime, Begin: pages(func(n int64) page {
			return page{body: body(now+24*hour, n)}
		})},
	}
}

// never fails where a number of prompt tokens other than this arrived.
func never(other float64) func(*Given, *Sink) error {
	return func(g *Given, s *Sink) error {
		points := s.Samples(g.Addr, promptTokens)
		if len(points) < 2 {
			return fmt.Errorf("only %d whole bodies arrived", len(points))
		}
		for _, p := range points {
			if p.Value != other {
				return fmt.Errorf("prompt tokens are %v where the server has %v", p.Value, other)
			}
		}
		return nil
	}
}

// increases fails where a backend computes more prompt tokens than the server
// had, from the points or from the derived rate.
func increases(truth func(asked int) float64) func(*Given, *Sink) error {
	return func(g *Given, s *Sink) error {
		points := s.Samples(g.Addr, promptTokens)
		if len(points) == 0 {
			return errors.New("nothing arrived")
		}
		most := truth(g.Asked())
		var all fleet.Series
		for _, p := range points {
			all.Add(p)
		}
		if all.Increments > most {
			return fmt.Errorf("a backend computes an increase of %v prompt tokens, the truth is at most %v", all.Increments, most)
		}
		if most > 0 {
			return nil
		}
		for _, p := range s.Samples(g.Addr, promptThroughput) {
			if p.Value > 0 {
				return fmt.Errorf("%s is %v, the truth is 0", promptThroughput, p.Value)
			}
		}
		return nil
	}
}

func startsBeforeTime(g *Given, s *Sink) error {
	for _, p := range s.Samples(g.Addr, promptTokens) {
		if p.Start > p.At {
			return fmt.Errorf("a point begins %s after its own time", time.Duration(p.Start-p.At))
		}
	}
	return arrives(g, s)
}
