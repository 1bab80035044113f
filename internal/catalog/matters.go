package catalog

import (
	"slices"
	"strings"
)

// DefectsPage is where the defects are explained.
const DefectsPage = "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/what-vllm-gets-wrong.md"

// Server is what is known of a vLLM server.
type Server struct {
	// Version is what the server reports; empty where it does not.
	Version string
	// Engine is "python", "rust" or "v0"; empty where it is not known.
	Engine string
	// Metrics are the metrics that it sends, by their names in the catalogue.
	Metrics []string
	// Setups are those that the data show.
	Setups []string
}

// Matters returns the defects that matter for a server: it sends a metric that they
// concern, and its version and its implementation can have them. Those of possible also
// need a setup that the data cannot show, as a kind of model or of requests; all others
// are in sure. A setup that the data can show and do not show is not there. Both are in the order of
// the file.
func Matters(s *Server) (sure, possible []DefectID) {
	v := s.release()
	ours := slices.ContainsFunc(s.Metrics, func(name string) bool { return strings.HasPrefix(name, "vllm.") })
	for i := range defects {
		d := &defects[i]
		switch {
		case !ours || !v.canHave(d) || s.Engine != "" && len(d.Engines) > 0 && !slices.Contains(d.Engines, s.Engine):
		case !slices.ContainsFunc(d.Metrics, func(name string) bool { return name == "*" || slices.Contains(s.Metrics, name) }):
		case s.shows(d.Setups):
			sure = append(sure, d.ID)
		case s.mayHave(d.Setups):
			possible = append(possible, d.ID)
		}
	}
	return sure, possible
}

// shows reports whether the data show all of some setups.
func (s *Server) shows(setups []string) bool {
	return !slices.ContainsFunc(setups, func(name string) bool { return !slices.Contains(s.Setups, name) })
}

// mayHave reports whether no setup is one that the data would show. Some KV connectors have
// no metrics of their own, so each server can have one.
func (s *Server) mayHave(needed []string) bool {
	return !slices.ContainsFunc(needed, func(name string) bool {
		return name != "connector" && !slices.Contains(s.Setups, name) && slices.ContainsFunc(setups, func(known Setup) bool {
			return known.Name == name && known.Visible != ""
		})
	})
}

// versionSeen is what is known about the version of a server.
type versionSeen struct {
	// release is its version if exact is true, else the oldest one that it can have.
	release Release
	exact   bool
	// unreleased is true for a build before the release, which can lack what the release
	// has.
	unreleased bool
}

// Released reports whether the version is that of a release that has the metrics of the server.
// Otherwise its defects are those of an unknown version.
func (s *Server) Released() bool { return s.release().exact }

// release returns what is known about the version. A build without the tags of its
// repository reports 0.1, so a version that is older than a metric of the server is none.
func (s *Server) release() versionSeen {
	least := s.Least()
	release, ok := ParseRelease(s.Version)
	if !ok || release.Compare(least) < 0 {
		return versionSeen{release: least}
	}
	rest := strings.TrimLeft(strings.TrimPrefix(s.Version, "v"), "0123456789.")
	before := slices.ContainsFunc([]string{"dev", "rc", "a", "b"}, func(word string) bool { return strings.HasPrefix(rest, word) })
	return versionSeen{release: release, exact: true, unreleased: before}
}

// Least is the oldest version that sends all metrics of the server.
func (s *Server) Least() Release {
	var least Release
	for _, name := range s.Metrics {
		m, found := ByName(name)
		if !found || m.Derived() || len(m.Sources) == 0 {
			continue
		}
		oldest, ok := ParseRelease(m.Sources[0].Since)
		for _, source := range m.Sources {
			since, has := ParseRelease(source.Since)
			ok = ok && has && source.Label == "" && strings.HasPrefix(source.Family, Prefixes[0])
			if since.Compare(oldest) < 0 {
				oldest = since
			}
		}
		if ok && oldest.Compare(least) > 0 {
			least = oldest
		}
	}
	return least
}

// canHave reports whether a server of this version can have a defect.
func (v versionSeen) canHave(d *Defect) bool {
	if since, ok := ParseRelease(d.Since); ok && v.exact && v.release.Compare(since) < 0 {
		return false
	}
	until, ends := ParseRelease(d.Until)
	return !ends || v.release.Compare(until) < 0 || v.unreleased && v.release == until
}
