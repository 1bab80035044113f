package content

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// The times of the stories that examples/scenarios cannot express: what happens begins at
// onset and is over at the end.
const (
	onset    = 20 * time.Minute
	over     = 50 * time.Minute
	duration = 80 * time.Minute
	// A server that leaves is found by comparison with an hour ago.
	leaves = 70 * time.Minute
)

// chat is a server of 8B on an H100 with a workload that it serves well.
func chat(seed uint64) vllmsim.Config {
	workload := engine.Chat(4)
	return vllmsim.Config{Dialect: "v1", Hardware: "8b-h100", Seed: seed, Workload: &workload}
}

// replicas are servers of one model, each with what happens to it. Servers of one
// configuration would all have the same faults.
func replicas(n int, each func(i int, s *history.Servers)) (all []history.Servers) {
	for i := range n {
		s := history.Servers{Config: chat(uint64(i + 1)), Name: "chat-" + string(rune('a'+i)), Namespace: "chat"}
		if each != nil {
			each(i, &s)
		}
		all = append(all, s)
	}
	return all
}

// jobs gives a server many clients that send the next request with the answer to the last one: hundreds always wait.
func jobs(s *history.Servers) { s.Config.Workload.Clients, s.Config.Workload.Think = 1000, 0.01 }

// second changes parameters of the second of several servers from onset to over.
func second(values map[engine.Parameter]float64) func(i int, s *history.Servers) {
	return func(i int, s *history.Servers) {
		if i != 1 {
			return
		}
		var all []scenario.Injection
		for p, value := range values {
			all = append(all, scenario.Injection{Parameter: p, Value: value, At: onset.Seconds(), Until: over.Seconds()})
		}
		s.Config.Changes = scenario.Changes(all, 0, 1)
	}
}

// lastServer drains the only server of the only model, minutes after the collector began: only the collector's own
// telemetry is left.
func lastServer(s *history.Story) {
	server := &s.Servers[0]
	server.Drains, server.Gone = onset-time.Minute, onset
	server.Config.Faults = []vllmsim.Fault{{Kind: vllmsim.FaultUnreachable, At: (onset - 40*time.Second).Seconds(), Until: (5 * onset).Seconds()}}
	own := s.Own
	s.Own = func(at time.Duration) []history.Sample {
		return append(own(at), history.Sample{
			Series: `otelcol_receiver_vllm_discovered_targets{job="otelcol-vllm",instance="collector-a:8888",receiver="vllm",stage="kept"}`,
			Value:  b2f(at < onset),
		})
	}
	s.Length = onset + 90*time.Minute
}

// away makes a server unreachable from onset to over.
func away(s *history.Servers) {
	s.Config.Faults = []vllmsim.Fault{{Kind: vllmsim.FaultUnreachable, At: onset.Seconds(), Until: over.Seconds()}}
}

// picker is a gateway in front of three endpoints: quiet, then now, then quiet again.
func picker(now history.GatewayPhase) *history.Gateway {
	quiet := history.GatewayPhase{Served: 12, Duration: 1500 * time.Millisecond, Ready: 3}
	again := quiet
	now.From, again.From = onset, over
	return &history.Gateway{Model: history.ChatModel, Pool: "chat-pool", Phases: []history.GatewayPhase{quiet, now, again}}
}

// from counts so many per second from onset to over.
func from(rate float64) func(at time.Duration) float64 {
	return func(at time.Duration) float64 { return rate * max(0, min(at, over)-onset).Seconds() }
}

// stories are those that examples/scenarios cannot express.
func stories() []*history.Story {
	story := func(name string, change func(s *history.Story)) *history.Story {
		s := &history.Story{Name: name, Length: duration, Servers: replicas(1, nil), Own: history.Exporters(nil, nil)}
		change(s)
		return s
	}
	return []*history.Story{
		story("healthy pool", func(s *history.Story) {
			s.Servers, s.Gateway = replicas(3, nil), picker(history.GatewayPhase{Served: 12, Duration: 1500 * time.Millisecond, Ready: 3})
			s.Syncers = []history.Syncer{{Adapters: []string{"sql", "law"}}, {Adapters: []string{"sql", "law"}}}
		}),
		// The pod is deleted, and discovery removes it: its series end.
		story("server removed", func(s *history.Story) {
			s.Servers = replicas(3, func(i int, s *history.Servers) {
				if i == 1 {
					s.Gone = leaves
				}
			})
			s.Length = leaves + 90*time.Minute
		}),
		// A rollout without a new pod yet, or a smaller number of replicas: Kubernetes deletes the
		// pod, its process ends, and discovery removes it. Nothing is wrong.
		story("server drained", func(s *history.Story) {
			s.Servers = replicas(3, func(i int, s *history.Servers) {
				if i == 1 {
					s.Drains, s.Gone = leaves-2*time.Minute, leaves
					s.Config.Faults = []vllmsim.Fault{{Kind: vllmsim.FaultUnreachable, At: (leaves - 100*time.Second).Seconds(), Until: (2 * leaves).Seconds()}}
				}
			})
			s.Length = leaves + 90*time.Minute
		}),
		story("model lost", lastServer),
		story("model scaled to 0", func(s *history.Story) {
			s.Servers[0].Config.Workload.Rate = 0
			lastServer(s)
		}),
		// The node dies with the sidecar that scrapes the server: nothing ends its series.
		story("server lost with its collector", func(s *history.Story) {
			s.Servers = replicas(3, func(i int, s *history.Servers) {
				if i == 1 {
					s.Gone, s.Silently = leaves, true
				}
			})
			s.Length = leaves + 90*time.Minute
		}),
		story("whole pool down", func(s *history.Story) {
			s.Servers = replicas(3, func(_ int, s *history.Servers) { away(s) })
		}),
		story("one of three replicas down", func(s *history.Story) {
			s.Servers = replicas(3, func(i int, s *history.Servers) {
				if i == 1 {
					away(s)
				}
			})
		}),
		// So slow that gaps between tokens miss the objective of 100 ms.
		story("one of three replicas slow", func(s *history.Story) {
			s.Servers = replicas(3, second(map[engine.Parameter]float64{engine.ParamBandwidth: 0.15}))
		}),
		// Its traffic keeps coming, as it does from a router that only asks whether /health answers.
		story("one of three replicas hangs", func(s *history.Story) {
			s.Servers = replicas(3, second(map[engine.Parameter]float64{engine.ParamStall: 1}))
		}),
		// The router sends nothing more to it once it hangs.
		story("a hung replica out of rotation", func(s *history.Story) {
			s.Servers = replicas(3, second(map[engine.Parameter]float64{engine.ParamStall: 1, engine.ParamArrivalRate: 0}))
		}),
		// Requests that fail end early, so that it has few at any time.
		story("one of four replicas fails", func(s *history.Story) {
			s.Servers = replicas(4, second(map[engine.Parameter]float64{engine.ParamErrorRate: 0.8}))
		}),
		story("lone server down", func(s *history.Story) { away(&s.Servers[0]) }),
		// A crash loop with a fast start: it is never gone for a minute.
		story("lone server crashes again and again", func(s *history.Story) {
			for at := onset; at < over; at += 150 * time.Second {
				s.Servers[0].Config.Faults = append(s.Servers[0].Config.Faults,
					vllmsim.Fault{Kind: vllmsim.FaultRestart, At: at.Seconds(), Until: (at + 45*time.Second).Seconds()})
			}
		}),
		// Jobs that always wait, from the server's beginning: whether anybody minds is not known.
		story("batch jobs", func(s *history.Story) {
			jobs(&s.Servers[0])
			s.Processor = map[string]any{"objectives": []any{}}
		}),
		// They come to a server that has little to do. Its model is one of batch_models.
		story("batch jobs at night", func(s *history.Story) {
			jobs(&s.Servers[0])
			s.Servers[0].Config.Changes = []engine.Change{
				{At: 0, Parameter: engine.ParamArrivalRate, Value: 0.005},
				{At: onset.Seconds(), Parameter: engine.ParamArrivalRate, Value: 1},
				{At: over.Seconds(), Parameter: engine.ParamArrivalRate, Value: 0.005},
			}
			s.Processor = map[string]any{"objectives": []any{}, "diagnosis": map[string]any{"batch_models": []any{"*"}}}
		}),
		// The picker refuses 3 of 15 requests: 20 %.
		story("gateway refuses requests", func(s *history.Story) {
			s.Gateway = picker(history.GatewayPhase{Served: 12, Refused: 3, Duration: 1500 * time.Millisecond, Ready: 3, Queued: 20})
		}),
		// It schedules nothing: all requests are refused.
		story("no ready endpoints", func(s *history.Story) {
			s.Gateway = picker(history.GatewayPhase{Refused: 12, Duration: 1500 * time.Millisecond})
		}),
		// Requests wait at the gateway while the servers have room.
		story("gateway holds requests back", func(s *history.Story) {
			s.Servers = replicas(3, nil)
			s.Gateway = picker(history.GatewayPhase{Served: 12, Duration: 1500 * time.Millisecond, Ready: 3, Queued: 60})
		}),
		story("slow gateway", func(s *history.Story) {
			s.Gateway = picker(history.GatewayPhase{Served: 12, Duration: 40 * time.Second, Ready: 3})
		}),
		story("LoRA adapter lost", func(s *history.Story) {
			s.Syncers = []history.Syncer{
				{Adapters: []string{"sql", "law"}}, {Adapters: []string{"sql", "law"}, Lost: map[string]time.Duration{"law": onset}},
			}
		}),
		// The configuration of all syncers says that it has to go.
		story("LoRA adapter unloaded", func(s *history.Story) {
			gone := history.Syncer{Adapters: []string{"sql", "law"}, Unloaded: map[string]time.Duration{"law": onset}}
			s.Syncers = []history.Syncer{gone, gone}
		}),
		story("collector silent", func(s *history.Story) {
			s.Away = []history.Span{{From: onset, To: over}}
		}),
		story("processor missing", func(s *history.Story) { s.NoProcessor = true }),
		story("queue filling", func(s *history.Story) {
			s.Own = history.Exporters(func(at time.Duration) float64 { return min(1000, from(2)(at)) * b2f(at < over) }, nil)
		}),
		story("sending fails", func(s *history.Story) { s.Own = history.Exporters(nil, from(30)) }),
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
