package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// The details of slow_steps that the GPUs of an engine show. notThrottled is that power and heat
// are ruled out.
const (
	powerCap     = "power_cap"
	thermal      = "thermal"
	memoryError  = "memory_error"
	interconnect = "interconnect"
	clocksLow    = "clocks_low"
	notThrottled = "not_throttled"
)

const (
	// gpuBefore is how many windows before the excess the GPUs are compared with, and gpuNow of
	// how many at most the newest evidence is taken.
	gpuBefore = 5
	gpuNow    = 5
	// gpuGrace is how many windows after the first harm evidence can appear: later it is
	// of something else, which did not begin the excess.
	gpuGrace = 3
	// leastThrottled is the least share of the time in which the clocks are held down that can
	// be felt: a GPU lowers them by at most half in most cases, and harm begins at 28 %.
	leastThrottled = 0.1
	// ofLoss is the part of the lost time that the evidence must be able to explain: time that
	// is lost to lower clocks is at most the time with lower clocks.
	ofLoss = 0.5
	// clearlyMore is how many times as much as before it must be.
	clearlyMore = 2
	// cleanOfLoss is the part of the lost time, and cleanThrottled the share, up to which
	// throttling is ruled out as the reason.
	cleanOfLoss    = 0.1
	cleanThrottled = 0.01
	// clockFell is the share by which the clock at work must be lower.
	clockFell = 0.1
	// These are limits of DCGM's own health checks (dcgm_gpu_hardware_limits.h): one error of the
	// memory or replay of NVLink, so many checksum errors of NVLink in a second, replays of PCIe
	// and corrected errors of the memory in a minute.
	leastEvents         = 1
	crcErrors           = 100
	replaysPerMinute    = 8
	correctedsPerMinute = 10
)

// excess is what the GPUs show of the time in which steps or prefills take longer.
type excess struct {
	// quiet is the time of the newest reading without it, since that of the last one before it;
	// 0 without an excess. harmed is when it first was harm.
	quiet, since, harmed int64
	// clean is until when throttling is ruled out; 0 where it is not.
	clean int64
	// eligible are the details that appeared while they could be the reason.
	eligible [numGPUDetails]bool
	now      finding
}

// gpuDetail orders the details: what explains the time that is lost comes first.
type gpuDetail uint8

const (
	limitedByPower gpuDetail = iota
	limitedByHeat
	memoryFails
	linkFails
	clockIsLow

	numGPUDetails
)

var gpuDetails = [numGPUDetails]string{powerCap, thermal, memoryError, interconnect, clocksLow}

type finding struct {
	// detail is empty where they show nothing.
	detail string
	// gpu names the GPU. before and now are shares of the time, or clocks in Hz, or a number of
	// errors since then.
	gpu         string
	before, now float64
	// worse is greater for a GPU that shows it more.
	worse float64
	// servers is how many servers share the GPUs of a pod, engines how many engines; host is
	// true where they are those of the host.
	servers, engines int
	host             bool
}

// followGPUs looks at the GPUs of the engine while its steps or prefills take longer.
func (e *engine) followGPUs(settings *Settings, s *State, at int64, raw Condition) {
	x := &e.excess
	if s.GPUs == nil {
		return
	}
	if !(e.Changes[slowerSteps].Score > 0) && !(e.Changes[slowerPrefills].Score > 0) {
		*x = excess{quiet: at}
		return
	}
	window := int64(settings.Window)
	x.since = cmp.Or(x.since, x.quiet, e.began)
	if !raw.harms() {
		return
	}
	x.harmed = cmp.Or(x.harmed, at)
	lost := 1 - math.Exp(-max(e.slowed, e.slowedPrefills, 0))
	x.now = finding{}
	s.GPUs(func(j *gpu.Joined) {
		look := gpuLook{
			Joined: j, lost: lost,
			before: gpu.Span{From: x.since - (gpuBefore+1)*window, To: x.since - window},
			since:  gpu.Span{From: x.since, To: at},
			now:    gpu.Span{From: max(x.since, at-gpuNow*window), To: at},
		}
		x.judge(&look, at, window)
		x.now.servers, x.now.host = j.Servers, j.Host
		x.now.engines = len(slices.Collect(s.known()))
	})
}

type gpuLook struct {
	*gpu.Joined
	// lost is the share of the time that is lost.
	lost float64
	// before is the time before the excess without the window in which it began, since the
	// whole excess, now its newest part.
	before, since, now gpu.Span
}

func (x *excess) judge(look *gpuLook, at, window int64) {
	late := at-x.harmed > gpuGrace*window
	found := look.find()
	if found[limitedByHeat].worse > found[limitedByPower].worse {
		found[limitedByPower].detail = "" // The greater of the two is the reason.
	}
	for d := range found {
		x.eligible[d] = x.eligible[d] || found[d].detail != "" && !late
	}
	for d := range found {
		if found[d].detail != "" && x.eligible[d] {
			x.now = found[d]
			break
		}
	}
	if x.now.detail == "" && look.clean(x.clean) {
		x.clean = at
		x.now = finding{detail: notThrottled}
	} else {
		x.clean = 0
	}
}

// find returns, for each detail, the GPU that shows it most.
func (look *gpuLook) find() (found [numGPUDetails]finding) {
	for _, d := range look.Devices {
		for detail, one := range [numGPUDetails]finding{
			limitedByPower: look.limited(d, gpu.ByPower), limitedByHeat: look.limited(d, gpu.ByHeat),
			memoryFails: look.memory(d), linkFails: look.counted(d, linkFails), clockIsLow: look.clock(d),
		} {
			if was := &found[detail]; one.detail != "" && (was.detail == "" || one.worse > was.worse) {
				*was = one
				was.gpu = nameOf(d)
			}
		}
	}
	return found
}

// limited is a GPU whose clock is held down for more of the time than before, and for enough
// of it.
func (look *gpuLook) limited(d *gpu.Device, l gpu.Limit) (f finding) {
	was, is, known := d.Limited(l, look.before, look.now, look.Apart)
	if !known || is < clearlyMore*was || is-was < max(leastThrottled, ofLoss*look.lost) {
		return f
	}
	return finding{detail: gpuDetails[l], before: was, now: is, worse: is - was}
}

// clock is a GPU whose clock at work is lower than before.
func (look *gpuLook) clock(d *gpu.Device) (f finding) {
	was, is := d.BusyClock(look.before), d.BusyClock(look.now)
	if fell := 1 - is/was; !(fell >= max(clockFell, ofLoss*look.lost)) {
		return f
	}
	return finding{detail: clocksLow, before: was, now: is, worse: -is / was}
}

// memory is a GPU whose memory has had errors within the excess.
func (look *gpuLook) memory(d *gpu.Device) finding {
	events := float64(d.MemoryEvents(look.since, look.Apart))
	if earlier := d.MemoryEvents(look.before, look.Apart); earlier == 0 && events >= leastEvents && d.NewestBefore(look.before.To, look.Apart) {
		counted, _ := d.Rate(gpu.MemoryErrors, look.since, look.Apart)
		now := events + signal.OrZero(counted)
		return finding{detail: memoryError, now: now, worse: now}
	}
	return look.counted(d, memoryFails)
}

// errorCounters are the counters of errors, and the rate in a second beyond which they matter.
var errorCounters = []struct {
	of    gpuDetail
	field gpu.Field
	least float64
}{
	{memoryFails, gpu.MemoryErrors, 0},
	{memoryFails, gpu.CorrectedErrors, correctedsPerMinute / 60.0},
	{linkFails, gpu.LinkErrors, 0},
	{linkFails, gpu.LinkCRC, crcErrors},
	{linkFails, gpu.PCIeReplays, replaysPerMinute / 60.0},
}

// counted is a GPU with errors within the excess, and clearly more than before it. Nothing is found where
// the number before is not known.
func (look *gpuLook) counted(d *gpu.Device, detail gpuDetail) finding {
	for _, of := range errorCounters {
		if of.of != detail {
			continue
		}
		before, rateBefore := d.Rate(of.field, look.before, look.Apart)
		now, rate := d.Rate(of.field, look.since, look.Apart)
		if now >= leastEvents && rate > of.least && rate >= clearlyMore*rateBefore {
			return finding{detail: gpuDetails[detail], before: before, now: now, worse: now - before}
		}
	}
	return finding{}
}

// clean reports whether the counters of all GPUs show, throughout the excess, that throttling
// explains almost nothing of it. until is until when that was known already; 0 for never.
func (look *gpuLook) clean(until int64) bool {
	span := look.since
	// The newest reading can be old in comparison with the excess. Half of it must be seen.
	half := span.From + (span.To-span.From)/2
	if until > span.From {
		span.From = until - look.Apart
	}
	if look.Ambiguous || len(look.Devices) == 0 {
		return false
	}
	for _, d := range look.Devices {
		var total float64
		for l := range gpu.NumLimits {
			share, whole := d.LimitedThroughout(l, span, half, look.Apart)
			if !whole {
				return false
			}
			total += share
		}
		if total > max(cleanThrottled, cleanOfLoss*look.lost) {
			return false
		}
	}
	return true
}

func nameOf(d *gpu.Device) string {
	if d.Name == "" {
		return d.ID
	}
	return d.Name + " (" + d.ID + ")"
}

// sentence says more precisely what the GPUs show.
func (f *finding) sentence() (text string) {
	switch f.detail {
	case powerCap, thermal:
		text = fmt.Sprintf("On %s that was so for %.0f %% of the time, before it for %.0f %%.", f.gpu, 100*f.now, 100*f.before)
	case memoryError, interconnect:
		text = fmt.Sprintf("It is %s, with %.0f errors since then, and %.0f in the windows before.", f.gpu, f.now, f.before)
	case clocksLow:
		text = fmt.Sprintf("On %s it was %.0f MHz, before it %.0f MHz.", f.gpu, f.now/1e6, f.before/1e6)
	case "", notThrottled:
		return ""
	}
	switch {
	case f.host:
		text += " Its exporter reports no pods: the GPUs are those of the host, where this collector knows no other server."
	case f.servers > 1:
		text += fmt.Sprintf(" The GPUs are those of the pod, which has %d servers.", f.servers)
	case f.engines > 1:
		text += fmt.Sprintf(" The GPUs are those of the pod, which has %d engines.", f.engines)
	}
	return text
}
