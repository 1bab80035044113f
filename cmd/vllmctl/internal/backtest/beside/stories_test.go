package beside

import (
	"fmt"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Truth is an incident of a simulated history: what was done to which server.
type Truth struct {
	Name, Instance, Pod string
	From, To            time.Duration
	// Cause is what the diagnosis has to say.
	Cause string
	// Drain is how long the consequences can last after the end.
	Drain time.Duration
}

// OwnRules are the alerts that the user of the histories has.
const OwnRules = `groups:
  - name: own
    rules:
      - alert: OwnFirstTokenSlow
        expr: >
          sum by (instance) (rate(vllm:time_to_first_token_seconds_sum[5m]))
          / (sum by (instance) (rate(vllm:time_to_first_token_seconds_count[5m])) > 0) > 1
        for: 5m
        labels: {severity: page}
      - alert: OwnServerDown
        expr: up{job="vllm"} == 0
        for: 5m
        labels: {severity: page}
`

func instance(name string) map[string]string {
	return map[string]string{"job": "vllm", "instance": name + ":8000", "namespace": "chat", "pod": name + "-7d9f"}
}

func chat(name string, rate float64, seed uint64, changes []engine.Change, faults ...vllmsim.Fault) Server {
	workload := engine.Chat(rate)
	return Server{Labels: instance(name), Config: vllmsim.Config{
		Hardware: "8b-h100", Version: "0.20.0", Workload: &workload, Seed: seed, Changes: changes, Faults: faults,
	}}
}

func during(from, to time.Duration, p engine.Parameter, value, usual float64) []engine.Change {
	return []engine.Change{{At: from.Seconds(), Parameter: p, Value: value}, {At: to.Seconds(), Parameter: p, Value: usual}}
}

// Short is a history of three hours with three incidents on two servers.
func Short(begin time.Time) (*Story, []Truth) {
	at := func(minutes int) time.Duration { return time.Duration(minutes) * time.Minute }
	truths := []Truth{
		{Name: "GPU clock falls", Instance: "chat-0:8000", From: at(100), To: at(120), Cause: "slow_steps", Drain: at(10)},
		{Name: "engine hangs", Instance: "chat-1:8000", From: at(130), To: at(142), Cause: "stalled", Drain: at(10)},
		{Name: "network cut", Instance: "chat-0:8000", From: at(150), To: at(160), Cause: "unreachable", Drain: at(5)},
	}
	return &Story{
		Begin: begin, Length: at(180), Every: 15 * time.Second,
		Servers: []Server{
			chat("chat-0", 4, 1, during(at(100), at(120), engine.ParamClock, 0.25, 1),
				vllmsim.Fault{At: at(150).Seconds(), Until: at(160).Seconds(), Kind: vllmsim.FaultUnreachable}),
			chat("chat-1", 5, 2, during(at(130), at(142), engine.ParamStall, 1, 0)),
		},
	}, truths
}

// Week is a history of seven days with three servers and an incident of one kind or another
// every ten hours.
func Week(begin time.Time) (*Story, []Truth) {
	story := &Story{Begin: begin, Length: 7 * 24 * time.Hour, Every: 15 * time.Second}
	changes := make([][]engine.Change, 3)
	faults := make([][]vllmsim.Fault, 3)
	var truths []Truth
	for n, at := 0, 12*time.Hour; at < story.Length-2*time.Hour; n, at = n+1, at+10*time.Hour {
		server := n % 3
		t := Truth{Instance: fmt.Sprintf("chat-%d:8000", server), From: at}
		switch n % 5 {
		case 0:
			t.Name, t.To, t.Cause, t.Drain = "GPU clock falls", at+20*time.Minute, "slow_steps", 10*time.Minute
			changes[server] = append(changes[server], during(at, t.To, engine.ParamClock, 0.25, 1)...)
		case 1:
			t.Name, t.To, t.Cause, t.Drain = "engine hangs", at+10*time.Minute, "stalled", 10*time.Minute
			changes[server] = append(changes[server], during(at, t.To, engine.ParamStall, 1, 0)...)
		case 2:
			t.Name, t.To, t.Cause, t.Drain = "network cut", at+10*time.Minute, "unreachable", 5*time.Minute
			faults[server] = append(faults[server], vllmsim.Fault{At: at.Seconds(), Until: t.To.Seconds(), Kind: vllmsim.FaultUnreachable})
		case 3:
			t.Name, t.To, t.Cause, t.Drain = "ten times as many requests", at+15*time.Minute, "demand_exceeds_capacity", 40*time.Minute
			changes[server] = append(changes[server], during(at, t.To, engine.ParamArrivalRate, 10, 1)...)
		case 4:
			t.Name, t.To, t.Cause, t.Drain = "restart", at+6*time.Minute, "unreachable", 10*time.Minute
			faults[server] = append(faults[server], vllmsim.Fault{At: at.Seconds(), Until: t.To.Seconds(), Kind: vllmsim.FaultRestart})
		}
		truths = append(truths, t)
	}
	for i := range changes {
		story.Servers = append(story.Servers, chat(fmt.Sprintf("chat-%d", i), 3+float64(i)/2, uint64(i+1), changes[i], faults[i]...))
	}
	return story, truths
}
