package content

import (
	"maps"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

// expected is what must happen in a story, from what the story does: the truth.
type expected struct {
	// fires are the alerts that must fire, and for which servers: FiresIn of the alerts.
	fires map[string][]string
	// either are alerts of which one must fire.
	either []string
	// may are alerts that are right whether they fire or not, each with the reason.
	may map[string]string
	// from and to are when users begin and cease to be harmed, or when the cause begins
	// and ends; 0 where nothing happens.
	from, to time.Duration
	// late is how long after from an alert must fire; 0 is tenMinutes.
	late time.Duration
	// lingers is how long after to an alert may still fire or begin to fire: until queues
	// are drained, and for keep_firing_for. 0 is twentyMinutes.
	lingers time.Duration
	// ends is how long after to the alerts that must fire end at most; 0 is late and lingers.
	ends time.Duration
	// forgets is true where nothing ends, but the alert does after a while.
	forgets bool
}

const (
	tenMinutes    = 10 * time.Minute
	twentyMinutes = 20 * time.Minute
)

// The alerts that are judged by the events of an objective, or that may fire beside others.
const (
	poolDegraded     = "VLLMPoolDegraded"
	serverNotServing = "VLLMServerNotServing"
	serverDegraded   = "VLLMServerDegraded"
	burnFast         = "VLLMBudgetBurnFast"
	burnMedium       = "VLLMBudgetBurnMedium"
	burnSlow         = "VLLMBudgetBurnSlow"
	burnLeak         = "VLLMBudgetBurnLeak"
	budgetExhausted  = "VLLMBudgetExhausted"
	rawLateFast      = "VLLMRawFirstTokenLateFast"
	rawLateMedium    = "VLLMRawFirstTokenLateMedium"
	rawQueue         = "VLLMRawQueueTimeHigh"
)

// firing adds what the alerts of a set say about the stories. A story of which nothing else is known
// is one of this package: what happens begins at onset and is over at the end.
func firing(set string, all map[string]expected) map[string]expected {
	for _, group := range content.Groups() {
		if group.Set != set {
			continue
		}
		for i := range group.Alerts {
			for story, servers := range group.Alerts[i].FiresIn {
				e, known := all[story]
				if !known {
					e = expected{from: onset, to: over}
				}
				if e.fires == nil {
					e.fires = map[string][]string{}
				}
				e.fires[group.Alerts[i].Name] = servers
				all[story] = e
			}
		}
	}
	return all
}

// ofRawNames is what must happen without our processor.
func ofRawNames() map[string]expected {
	fires := func(to time.Duration) expected {
		return expected{from: 10 * time.Minute, to: to * time.Minute, late: 15 * time.Minute}
	}
	return firing(content.Wire, map[string]expected{
		"healthy": nothing(), "idle": nothing(), "bursts": nothing(), "asleep": nothing(), "frozen-gauges": nothing(),
		// Slower than usual, and still within the limits: without a baseline it cannot be known.
		"bandwidth-loss": nothing(), "front-end-starved": nothing(),
		"unreachable": fires(13),
		// It is gone for 74 s, and the rule waits for two minutes.
		"restart":  nothing(),
		"erroring": fires(20),
		"overload": fires(20),
		// Three minutes are less than the window of the rule on stalls. What waited is late.
		"long stalled": fires(25).with(rawQueue, "the requests that waited for the stall end together"),
		"stalled":      nothing().with(rawQueue, "the requests that waited for the stall end together"),
	})
}

// during is the expectation of a scenario that does harm for a while.
func during(from, to time.Duration) expected {
	return expected{from: from * time.Minute, to: to * time.Minute}
}

// nothing is the expectation of a story without harm.
func nothing() expected { return expected{} }

// with adds an alert that is right either way.
func (e expected) with(alert, reason string) expected {
	may := map[string]string{alert: reason}
	maps.Copy(may, e.may)
	e.may = may
	return e
}

// ofScenarios is what must happen in the files of examples/scenarios. The times are those
// in the files. A server without a pool that is degraded opens a ticket, one that does not
// serve pages.
func ofScenarios() map[string]expected {
	const (
		alsoDegraded = "before and after users get nothing at all, they are served badly"
		atTheLimit   = "one of five is exactly the share from which a server fails"
	)
	all := map[string]expected{
		"healthy": nothing(), "idle": nothing(), "bursts": nothing(), "daily-ramp": nothing(),
		// Slow for 16 s: too short for an alert.
		"one-minute": nothing(),
		// Users ask for other work than before, and wait less than five times the usual: a notice.
		"long-prompts": nothing(), "prefix-reuse-fell": nothing(), "cache-thrash": nothing(),
		// It was put to sleep on purpose; hardly a request comes.
		"asleep": nothing(),
		// There is nothing to serve.
		"frozen-gauges": nothing(),

		"corrupted-logits": {
			either: []string{serverDegraded, serverNotServing}, from: 10 * time.Minute, to: 20 * time.Minute,
			may: map[string]string{serverDegraded: atTheLimit, serverNotServing: atTheLimit},
		},

		// Three of ten requests fail.
		"erroring":    during(10, 20).with(serverDegraded, alsoDegraded),
		"stalled":     during(10, 13).with(serverDegraded, alsoDegraded),
		"unreachable": during(10, 13).with(serverDegraded, alsoDegraded),
		// The only server is gone for 74 s.
		"restart":    during(10, 12).with(serverDegraded, alsoDegraded),
		"cold-cache": during(15, 17).with(serverDegraded, alsoDegraded),

		// Clients time out in the queue, cancel, and ask again: the fourth scenario of the public guide.
		"retry-storm": during(10, 31).with(serverDegraded, alsoDegraded),
		// Each minute is like the one before, so that the diagnosis may learn the fault.
		"drift":        nothing().with(serverDegraded, "it does harm in the end"),
		"real-traffic": nothing(),
		// Users may have read enough: a notice.
		"clients-cancel": nothing(),
		// The fault is one that only "vllmsim judge" seeks.
		"mild": nothing(),

		"gpu-throttled-before": during(12, 20),
		// At the server that gets most requests they wait for many seconds.
		"replica-imbalance": during(10, 20).with(serverDegraded, alsoDegraded),
		"engine-imbalance":  during(10, 20).with(serverDegraded, alsoDegraded),
	}
	for _, name := range []string{
		"overload", "longer-outputs", "admission-deferred", "slow-steps", "bandwidth-loss",
		"fewer-kv-blocks", "front-end-starved", "speculation-useless", "kv-transfer-failing", "two-causes", "closed-loop",
		"gpu-power-cap", "gpu-hot", "gpu-link-errors", "gpu-clocks-low", "gpu-exporter-restarts", "gpu-amd", "gpu-memory-errors",
		// The GPU is not the cause, or it cannot be known.
		"gpu-clean", "gpu-no-counters", "gpu-shared", "gpu-partition",
		// All engines of the pool do harm, and a pool of several engines reports it.
		"lockstep",
	} {
		all[name] = during(10, 20)
	}
	errors := all["gpu-memory-errors"]
	// It counts the errors of the last hour.
	errors.lingers = 80 * time.Minute
	all["gpu-memory-errors"] = errors
	return all
}

// ofStories is what must happen in the stories of this package, where that is more than an alert
// from onset to over.
func ofStories() map[string]expected {
	// It is found by comparison with an hour ago, and forgotten after an hour.
	gone := expected{from: leaves, to: leaves + time.Hour, late: 20 * time.Minute, forgets: true}
	// Their rules wait for ten or fifteen minutes, after the series is stale or half full.
	slow := expected{from: onset, to: over, late: 25 * time.Minute}
	return map[string]expected{
		"healthy pool":        nothing(),
		"batch jobs":          nothing(),
		"batch jobs at night": nothing(),
		"server drained":      nothing().with(poolDegraded, "two servers carry the load of three"),
		"server removed":      gone.with(poolDegraded, "two servers carry the load of three"),
		// They stay for a day, and the stories are shorter.
		"model lost":                     {from: onset, to: onset + 90*time.Minute},
		"model scaled to 0":              {from: onset, to: onset + 90*time.Minute},
		"server lost with its collector": gone.with(poolDegraded, "two servers carry the load of three"),
		// Half an hour of requests waits at it when it continues.
		"one of three replicas hangs": expected{from: onset, to: over}.with(poolDegraded, "it serves those that waited, and the pool has them"),
		// Servers that answer again, and serve.
		"one of three replicas down":     {from: onset, to: over, ends: 2 * time.Minute},
		"a hung replica out of rotation": {from: onset, to: over, ends: 2 * time.Minute},
		// Errors have to be gone for a window.
		"one of four replicas fails": {from: onset, to: over, ends: 3 * time.Minute},
		"whole pool down":            expected{from: onset, to: over, ends: 2 * time.Minute}.with(poolDegraded, "on the way back the servers answer one after the other"),
		"lone server crashes again and again": {either: []string{serverNotServing, serverDegraded}, from: onset, to: over, may: map[string]string{
			serverNotServing: "it is unreachable again and again", serverDegraded: "it loses its requests again and again",
		}},
		"LoRA adapter lost": slow, "collector silent": slow, "queue filling": slow, "slow gateway": slow,
		"LoRA adapter unloaded": nothing(),
		"processor missing":     {to: duration, late: 20 * time.Minute},
	}
}
