package engine

import "math"

// numbers are the random numbers that make a request.
type numbers struct {
	prompt, output float64 // Normally distributed.
	u              [24]float64
}

// draw draws the numbers of a request, in the same order whatever is switched on.
func (a *arrivals) draw(id int) (d numbers) {
	a.own.Seed(a.seed, uint64(id)*0x9e3779b97f4a7c15+1)
	d.prompt, d.output = a.rng.NormFloat64(), a.rng.NormFloat64()
	for i := range d.u {
		d.u[i] = a.rng.Float64()
	}
	return d
}

// request returns the first attempt of a request.
func (a *arrivals) request(came arrival, v *values) *request {
	r := &request{id: came.id, first: came.id, arrived: came.at, what: came.what}
	d := a.draw(came.id)
	a.content(r, &d, v)
	a.fate(r, &d, v)
	a.work.shape(r, d.u[18], d.u[19], d.u[20])
	if r.cut {
		a.cut++
	}
	return r
}

// retry returns the next attempt of a request: the same prompt, under the factors of the
// first attempt, with another fate.
func (a *arrivals) retry(before *request, at float64, v *values) *request {
	r := &request{
		id: again(before.id), first: before.first, arrived: at, what: before.what, sender: before.sender, asked: before.asked,
	}
	d, fate := a.draw(before.first), a.draw(again(before.id))
	a.content(r, &d, before.asked)
	a.fate(r, &fate, v)
	a.work.shape(r, d.u[18], d.u[19], d.u[20])
	return r
}

// content is what a request asks for.
func (a *arrivals) content(r *request, d *numbers, v *values) {
	w, u := &a.work, &d.u
	r.prefix = -1
	if r.what == nil {
		r.prompt = w.Prompt.draw(d.prompt, v[ParamPromptLength], a.limit*3/4)
		r.output = w.Output.draw(d.output, v[ParamOutputLength], a.limit-r.prompt)
	} else {
		prompt, output := scaled(r.what.prompt, v[ParamPromptLength]), scaled(r.what.output, v[ParamOutputLength])
		r.prompt = int(min(prompt, float64(a.limit-1)))
		r.output = int(min(output, float64(a.limit-r.prompt)))
		r.cut = float64(r.prompt)+float64(r.output) < prompt+output
	}
	r.end = EndStop
	most := a.limit - r.prompt
	if len(w.MaxTokens) > 0 {
		r.maxTokens = w.MaxTokens[int(u[1]*float64(len(w.MaxTokens)))]
		if r.maxTokens > 0 {
			most = min(most, r.maxTokens)
		}
	}
	if r.output >= most {
		r.output, r.end = most, EndLength
	}
	switch {
	case r.what != nil && len(r.what.prefix) > 0:
		// A factor p of the pool leaves one of p requests the content that others have.
		if u[23]*v[ParamPrefixPool] < 1 {
			r.shared = min(r.prompt, r.what.known*r.what.tokens)
		}
	case u[2] < w.PrefixShare:
		skew := w.PrefixSkew
		if skew == 0 {
			skew = 2
		}
		r.prefix = int(math.Pow(u[3], skew) * math.Ceil(float64(w.Prefixes)*v[ParamPrefixPool]))
		r.shared = min(w.PrefixTokens, r.prompt)
	}
	if u[4] < w.AdapterShare && w.Adapters > 0 {
		pool := min(maxAdapters, math.Ceil(float64(w.Adapters)*v[ParamAdapterPool]))
		r.adapter = 1 + int(u[5]*pool)
	}
	if u[21] < w.MediaShare {
		r.media = 1 + int(u[22]*float64(w.Media))
	}
	r.completions = u[14] < 0.3
	r.streams = u[15] < 0.7
}

func scaled(recorded int32, factor float64) float64 {
	return max(1, math.Floor(float64(recorded)*factor+0.5))
}

// fate is what becomes of a request, as far as that does not depend on the engine.
func (a *arrivals) fate(r *request, d *numbers, v *values) {
	w, u := &a.work, &d.u
	r.route = u[0]
	r.stopAt = r.output
	r.leaves = math.Inf(1)
	if w.Timeout > 0 {
		r.leaves = r.arrived + w.Timeout
	}
	switch {
	case u[6] < w.Refused:
		r.end = EndRefused
	case u[16] < v[ParamClientErrors]:
		r.end, r.excepted = EndRefused, true
	case u[17] < v[ParamUnscheduled]:
		r.end, r.unscheduled = EndError, true
	case u[7] < v[ParamErrorRate]:
		r.end, r.stopAt = EndError, 1+int(u[8]*float64(r.output))
	case u[9] < w.LeaveEarly:
		r.impatient = true
		r.leaves = min(r.leaves, r.arrived-math.Log(1-u[10])*w.Patience)
	case u[9] < w.LeaveEarly+w.LeaveLate+v[ParamClientsCancel]:
		r.stopAt = 1 + int(u[10]*float64(r.output))
		if r.stopAt < r.output {
			r.end = EndLeft
		}
	}
	r.corrupted = u[11] < v[ParamCorruption]
	r.transferFails = u[12] < v[ParamTransferFailure]
	r.remote = u[13]
}

// shape makes a request one for choices, a beam search or a session, by three numbers
// between 0 and 1. Beam searches and sessions are complete answers.
func (w *Workload) shape(r *request, choices, beams, sessions float64) {
	complete := (r.end == EndStop || r.end == EndLength) && !r.impatient
	switch {
	case r.end == EndRefused:
	case choices < w.ChoicesShare:
		r.choices = w.Choices
	case complete && beams < w.BeamShare:
		r.beams, r.end, r.leaves = w.Beams, EndLength, math.Inf(1)
	case complete && sessions < w.SessionShare:
		r.session = &session{left: w.Chunks - 1, prompt: max(1, r.prompt/4), output: r.output, pause: w.ChunkPause}
	}
}
