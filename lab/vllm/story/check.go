package story

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// check finds what would make a story something else than what it says. A play takes half an
// hour, so that this is better known before.
func (b *Book) check() error {
	if err := b.Steady.check(); err != nil {
		return fmt.Errorf("steady: %w", err)
	}
	names := map[string]bool{}
	for i := range b.Servers {
		s := &b.Servers[i]
		if s.Name == "" || names[s.Name] {
			return fmt.Errorf("server %q: want a name that no other server has", s.Name)
		}
		names[s.Name] = true
		if s.Steady == nil {
			continue
		}
		if err := s.Steady.check(); err != nil {
			return fmt.Errorf("server %q, steady: %w", s.Name, err)
		}
	}
	names = map[string]bool{}
	for i := range b.Stories {
		s := &b.Stories[i]
		// Names are parts of file names and of names of phases, and stand in lists with commas.
		if s.Name == "" || strings.ContainsAny(s.Name, "/,+ ") || names[s.Name] {
			return fmt.Errorf("story %q: want a name that no other story has, without any of \"/,+\" and spaces", s.Name)
		}
		names[s.Name] = true
		server := b.server(s.Server)
		if server == nil {
			return fmt.Errorf("story %q: there is no server %q", s.Name, s.Server)
		}
		if len(s.Phases) == 0 {
			return fmt.Errorf("story %q has no phases", s.Name)
		}
		for j := range s.Phases {
			p := &s.Phases[j]
			if err := p.check(); err != nil {
				return fmt.Errorf("story %q, phase %q: %w", s.Name, p.Name, err)
			}
			if p.Adapters > server.Adapters {
				return fmt.Errorf("story %q, phase %q: it asks for %d adapters, and server %q has %d", s.Name, p.Name, p.Adapters, s.Server, server.Adapters)
			}
		}
	}
	return nil
}

func (p *Phase) check() error {
	ways := 0
	for _, is := range []bool{p.Load > 0, p.Rate > 0, p.AtOnce > 0, p.Every > 0, p.Clients > 0} {
		if is {
			ways++
		}
	}
	if p.For < time.Second || ways > 1 {
		return fmt.Errorf("it lasts %s, and its requests come in %d ways; want at least 1s, and one of load, rate, at_once, every and clients, or none", p.For, ways)
	}
	for name, value := range map[string]float64{
		"load": p.Load, "to": p.To, "rate": p.Rate, "at_once": float64(p.AtOnce), "every": float64(p.Every), "quiet": float64(p.Quiet),
		"clients": float64(p.Clients), "timeout": float64(p.Timeout), "retries": float64(p.Retries), "choices": float64(p.Choices),
		"adapters": float64(p.Adapters), "prefix: tokens": float64(p.Prefix.Tokens), "prefix: of": float64(p.Prefix.Of),
		"prompt: sigma": p.Prompt.Sigma, "output: sigma": p.Output.Sigma,
	} {
		// Not a number is not at least 0 either.
		if !(value >= 0 && value < 1e18) {
			return fmt.Errorf("%s is %v; want 0 or more", name, value)
		}
	}
	for name, share := range map[string]float64{"abort": p.Abort, "bad": p.Bad, "grammar": p.Grammar} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("%s is %v; want a share between 0 and 1", name, share)
		}
	}
	for name, l := range map[string]Lengths{"prompt": p.Prompt, "output": p.Output} {
		if !(l.Mean >= 1 && l.Mean <= float64(l.Most)) {
			return fmt.Errorf("%s: the mean of the lengths is %v, and the most is %d; want at least 1 token, and no more than the most", name, l.Mean, l.Most)
		}
	}
	switch {
	case p.To > 0 && p.Load == 0:
		return errors.New("to is the load at the end; without a load at the beginning there is none")
	case p.Quiet > 0 && (p.Clients > 0 || p.Quiet >= p.For):
		return fmt.Errorf("quiet is the time before the first request in a phase of %s; clients do not wait for it", p.For)
	case (p.Prefix.Tokens > 0) != (p.Prefix.Of > 0):
		return errors.New("a shared prefix needs both tokens and of")
	case p.Fault != nil:
		return p.Fault.check()
	}
	return nil
}

func (f *Fault) check() error {
	if _, known := Faults[f.Do]; !known {
		return fmt.Errorf("unknown fault %q", f.Do)
	}
	switch strings.TrimRight(f.Of, "0123456789") {
	case "", "worker", "core", "api":
	default:
		return fmt.Errorf("fault %q: unknown process %q; want worker, core or api", f.Do, f.Of)
	}
	if f.Do == "slow" && !(f.Share > 0 && f.Share < 1) {
		return fmt.Errorf("a slowed process needs a share between 0 and 1, not %v", f.Share)
	}
	if f.Do == "neighbour" && f.Count < 1 {
		return fmt.Errorf("neighbours need a count of at least 1, not %d", f.Count)
	}
	return nil
}
