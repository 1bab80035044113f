package content

import (
	"maps"
	"time"
)

// expected is what must happen in a story, from what the story does: the truth.
type expected struct {
	// fires are the alerts that must fire, and for which servers; no server means that the
	// alert names none, or all that the story harms.
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
	// forgets is true where nothing ends, but the alert does after a while.
	forgets bool
}

const (
	tenMinutes    = 10 * time.Minute
	twentyMinutes = 20 * time.Minute
)

// The alerts of the groups.
const (
	poolNotServing    = "VLLMPoolNotServing"
	poolDegraded      = "VLLMPoolDegraded"
	serverNotServing  = "VLLMServerNotServing"
	replicaNotServing = "VLLMReplicaNotServing"
	serverDegraded    = "VLLMServerDegraded"
	serverVanished    = "VLLMServerVanished"
	tooFewServers     = "VLLMTooFewServers"
	diagnosisMissing  = "VLLMDiagnosisMissing"
	burnFast          = "VLLMBudgetBurnFast"
	burnMedium        = "VLLMBudgetBurnMedium"
	burnSlow          = "VLLMBudgetBurnSlow"
	burnLeak          = "VLLMBudgetBurnLeak"
	budgetExhausted   = "VLLMBudgetExhausted"
	gatewayErrors     = "VLLMGatewayErrors"
	noReadyEndpoints  = "VLLMGatewayNoReadyEndpoints"
	gatewayLatency    = "VLLMGatewayLatencyHigh"
	loraNotLoaded     = "VLLMLoRAAdapterNotLoaded"
	collectorSilent   = "VLLMCollectorSilent"
	queueFilling      = "VLLMCollectorQueueFilling"
	sendFailing       = "VLLMCollectorSendFailing"
	gpuSlowsServer    = "VLLMGPUSlowsServer"
	gpuMemoryErrors   = "VLLMGPUMemoryErrors"
)

// The alerts on vLLM's own names.
const (
	rawDown       = "VLLMRawServerDown"
	rawStalled    = "VLLMRawServerStalled"
	rawLateFast   = "VLLMRawFirstTokenLateFast"
	rawLateMedium = "VLLMRawFirstTokenLateMedium"
	rawQueue      = "VLLMRawQueueTimeHigh"
	rawFailing    = "VLLMRawRequestsFailing"
)

// ofRawNames is what must happen without our processor.
func ofRawNames() map[string]expected {
	fires := func(alert string, to time.Duration, servers ...string) expected {
		return expected{fires: map[string][]string{alert: servers}, from: 10 * time.Minute, to: to * time.Minute, late: 15 * time.Minute}
	}
	return map[string]expected{
		"healthy": nothing(), "idle": nothing(), "bursts": nothing(), "asleep": nothing(), "frozen-gauges": nothing(),
		// Slower than usual, and still within the limits: without a baseline it cannot be known.
		"bandwidth-loss": nothing(), "front-end-starved": nothing(),
		"unreachable": fires(rawDown, 13, lone),
		// It is gone for 74 s, and the rule waits for two minutes.
		"restart":  nothing(),
		"erroring": fires(rawFailing, 20),
		"overload": fires(rawQueue, 20),
		// Three minutes are less than the window of the rule on stalls. What waited is late.
		"long stalled": fires(rawStalled, 25, lone).with(rawQueue, "the requests that waited for the stall end together"),
		"stalled":      nothing().with(rawQueue, "the requests that waited for the stall end together"),
	}
}

const lone = "vllm-0:8000"

// one is the expectation of one alert for the only server of a scenario.
func one(alert string, from, to time.Duration) expected {
	return expected{fires: map[string][]string{alert: {lone}}, from: from * time.Minute, to: to * time.Minute}
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
		// It was put to sleep on purpose; hardly a request comes.
		"asleep": nothing(),
		// There is nothing to serve.
		"frozen-gauges": nothing(),

		"overload":            one(serverDegraded, 10, 20),
		"long-prompts":        one(serverDegraded, 10, 20),
		"longer-outputs":      one(serverDegraded, 10, 20),
		"prefix-reuse-fell":   one(serverDegraded, 10, 20),
		"cache-thrash":        one(serverDegraded, 10, 20),
		"admission-deferred":  one(serverDegraded, 10, 20),
		"slow-steps":          one(serverDegraded, 10, 20),
		"bandwidth-loss":      one(serverDegraded, 10, 20),
		"fewer-kv-blocks":     one(serverDegraded, 10, 20),
		"front-end-starved":   one(serverDegraded, 10, 20),
		"speculation-useless": one(serverDegraded, 10, 20),
		"kv-transfer-failing": one(serverDegraded, 10, 20),
		"two-causes":          one(serverDegraded, 10, 20),
		"corrupted-logits": {
			either: []string{serverDegraded, serverNotServing}, from: 10 * time.Minute, to: 20 * time.Minute,
			may: map[string]string{serverDegraded: atTheLimit, serverNotServing: atTheLimit},
		},

		// Three of ten requests fail.
		"erroring":    one(serverNotServing, 10, 20).with(serverDegraded, alsoDegraded),
		"stalled":     one(serverNotServing, 10, 13).with(serverDegraded, alsoDegraded),
		"unreachable": one(serverNotServing, 10, 13).with(serverDegraded, alsoDegraded),
		// The only server is gone for 74 s.
		"restart":    one(serverNotServing, 10, 12).with(serverDegraded, alsoDegraded),
		"cold-cache": one(serverNotServing, 15, 17).with(serverDegraded, alsoDegraded),

		"closed-loop": one(serverDegraded, 10, 20),
		"retry-storm": one(serverDegraded, 10, 31).with(serverNotServing, "hardly a request is answered"),
		// Each minute is like the one before, so that the diagnosis may learn the fault.
		"drift":        nothing().with(serverDegraded, "it does harm in the end"),
		"real-traffic": nothing(),
		// The fault is one that only "vllmsim judge" seeks.
		"mild": nothing(),
	}
	gpu := func(more ...string) expected {
		e := one(serverDegraded, 10, 20)
		for _, alert := range append(more, gpuSlowsServer) {
			e.fires[alert] = nil
		}
		return e
	}
	for _, name := range []string{"gpu-power-cap", "gpu-hot", "gpu-link-errors", "gpu-clocks-low", "gpu-exporter-restarts", "gpu-amd"} {
		all[name] = gpu()
	}
	errors := gpu(gpuMemoryErrors)
	// It counts the errors of the last hour.
	errors.lingers = 80 * time.Minute
	all["gpu-memory-errors"] = errors
	// The GPU is not the cause, or it cannot be known.
	for _, name := range []string{"gpu-clean", "gpu-no-counters", "gpu-shared", "gpu-partition"} {
		all[name] = one(serverDegraded, 10, 20)
	}
	all["gpu-throttled-before"] = one(serverDegraded, 12, 20)
	imbalance := func(server string) expected {
		return expected{
			fires: map[string][]string{poolDegraded: nil, serverDegraded: {server}},
			from:  10 * time.Minute, to: 20 * time.Minute,
		}
	}
	// At the server that gets most requests they wait for many seconds.
	late := imbalance(lone)
	late.fires = map[string][]string{poolDegraded: nil, replicaNotServing: {lone}}
	all["replica-imbalance"], all["engine-imbalance"] = late.with(serverDegraded, alsoDegraded), imbalance(lone)
	// All engines of the pool do harm, and a pool of several engines reports it.
	all["lockstep"] = imbalance(lone)
	return all
}

// ofStories is what must happen in the stories of this package.
func ofStories() map[string]expected {
	at := func(fires map[string][]string) expected { return expected{fires: fires, from: onset, to: over} }
	all := map[string]expected{
		"healthy pool":   nothing(),
		"server drained": nothing().with(poolDegraded, "two servers carry the load of three"),
		"server removed": at(map[string][]string{serverVanished: {"chat-b-0:8000"}}).
			with(poolDegraded, "two servers carry the load of three"),
		"server lost with its collector": at(map[string][]string{serverVanished: {"chat-b-0:8000"}}).
			with(poolDegraded, "two servers carry the load of three"),
		"whole pool down": at(map[string][]string{
			poolNotServing: nil, replicaNotServing: {"chat-a-0:8000", "chat-b-0:8000", "chat-c-0:8000"},
		}).with(poolDegraded, "on the way back the servers answer one after the other"),
		"one of three replicas down": at(map[string][]string{poolDegraded: nil, replicaNotServing: {"chat-b-0:8000"}}),
		"one of three replicas slow": at(map[string][]string{poolDegraded: nil, serverDegraded: {"chat-b-0:8000"}}),
		"lone server down":           at(map[string][]string{serverNotServing: {"chat-a-0:8000"}}),
		"lone server crashes again and again": {either: []string{serverNotServing, serverDegraded}, from: onset, to: over, may: map[string]string{
			serverNotServing: "it is unreachable again and again", serverDegraded: "it loses its requests again and again",
		}},
		"gateway refuses requests": at(map[string][]string{gatewayErrors: nil}),
		"no ready endpoints":       at(map[string][]string{noReadyEndpoints: nil, gatewayErrors: nil}),
		"slow gateway":             at(map[string][]string{gatewayLatency: nil}),
		// Nothing is wrong with any server: only the pool has an alert.
		"gateway holds requests back": at(map[string][]string{poolDegraded: nil}),
		"LoRA adapter lost":           at(map[string][]string{loraNotLoaded: nil}),
		"LoRA adapter unloaded":       nothing(),
		"collector silent":            at(map[string][]string{collectorSilent: nil}),
		"processor missing":           {fires: map[string][]string{diagnosisMissing: {"chat-a-0:8000"}}, to: duration},
		"queue filling":               at(map[string][]string{queueFilling: nil}),
		"sending fails":               at(map[string][]string{sendFailing: nil}),
	}
	for _, name := range []string{"server removed", "server lost with its collector"} {
		e := all[name]
		// It is found by comparison with an hour ago, and forgotten after an hour.
		e.from, e.to, e.late, e.forgets = leaves, leaves+time.Hour, 20*time.Minute, true
		all[name] = e
	}
	for _, name := range []string{"LoRA adapter lost", "collector silent", "queue filling", "slow gateway"} {
		e := all[name]
		// Their rules wait for ten or fifteen minutes, after the series is stale or half full.
		e.late = 25 * time.Minute
		all[name] = e
	}
	e := all["processor missing"]
	e.late = 20 * time.Minute
	all["processor missing"] = e
	return all
}
