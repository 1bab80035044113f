package check

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// kindCodes are the codes of servers that are not vLLM.
var kindCodes = map[string]string{
	"gateway": CodeGateway, "lora_syncer": CodeGateway, "router": CodeRouter, "simulator": CodeSimulator,
	"accelerator": CodeAccelerator,
}

// judgeServer judges what the target is, and how it is.
func judgeServer(f *findings, s *Seen, t *Target) {
	r := s.First
	t.Version = printable(r.Version)
	switch {
	case r.IsServer && hasEngine(r):
		t.Kind, t.Engine = "vllm", r.Server.Engine
		judgeVersion(f, s)
		judgeHealth(f, r)
		judgeHang(f, s)
		judgeDefects(f, r)
		judgeRole(f, s)
		f.pass(Server, "%s", described(r))
	case kindCodes[r.Kind] != "":
		t.Kind = r.Kind
		what := "The target is " + kindWords(r.Kind)
		if r.Kind == "simulator" {
			what += "."
		} else {
			what += notJudged(s)
		}
		f.add(kindCodes[r.Kind], what)
	case hasEngine(r) && isImitator(r):
		t.Kind = "simulator"
		f.add(CodeSimulator, "The target imitates vLLM: it has labels that vLLM never has.")
	case hasEngine(r):
		// An old server declares its families before it has a request.
		t.Kind = "vllm"
		f.pass(Server, "vLLM %s, without a request since its start", versionOf(r))
	default:
		code, what := unknownServer(r)
		if code == CodeLMCache {
			t.Kind = "lmcache"
			what += notJudged(s)
		}
		f.add(code, what)
	}
	judgeClock(f, r)
	judgeSecond(f, s, t)
}

// notJudged ends the sentence about a server without an engine.
func notJudged(s *Seen) string {
	n := 0
	for _, of := range series(s.newest().Emitted) {
		n += of
	}
	return fmt.Sprintf(". It has no engine, so its %d series do not show a condition.", n)
}

// kindWords is a kind of server with its article.
func kindWords(kind string) string {
	if kind == "accelerator" {
		return "an exporter of GPUs"
	}
	return "a " + strings.ReplaceAll(kind, "_", " ")
}

// described is the server in some words.
func described(r *probe.Reading) string {
	out := []string{"vLLM " + versionOf(r)}
	if name := map[string]string{"python": "V1 engine", "rust": "Rust front end", "v0": "V0 engine"}[r.Server.Engine]; name != "" {
		out = append(out, name)
	}
	for _, setup := range catalog.Setups() {
		if slices.Contains(r.Server.Setups, setup.Name) {
			out = append(out, strings.Split(setup.Meaning, " (")[0])
		}
	}
	return strings.Join(out, ", ")
}

// hasEngine reports whether a body declares families of an engine. The API server itself has
// some others, which stay when the metrics of the engine are switched off.
func hasEngine(r *probe.Reading) bool {
	return slices.ContainsFunc(r.Families, func(x probe.Family) bool {
		return strings.HasPrefix(x.Source, catalog.Prefixes[0]) &&
			!strings.HasPrefix(x.Source, "vllm:websocket_") && !strings.HasPrefix(x.Source, "vllm:tool_call_parser_")
	})
}

// isImitator reports whether a body has metrics of an engine with labels that vLLM does not
// have. For such a body the receiver says nothing about the server.
func isImitator(r *probe.Reading) bool {
	return r.Kind == "" && !r.IsServer && samples(r) > 0 && len(r.Server.Metrics) == 0
}

// samples is the number of series of vLLM's families.
func samples(r *probe.Reading) int {
	n := 0
	for _, x := range r.Families {
		if strings.HasPrefix(x.Source, catalog.Prefixes[0]) {
			n += x.Series
		}
	}
	return n
}

// unknownServer is the finding for a body without metrics of an engine.
func unknownServer(r *probe.Reading) (code, what string) {
	if prefix := foreignPrefix(r); prefix != "" {
		return CodePrefix, fmt.Sprintf("Families have the prefix %q and names of vLLM.", prefix)
	}
	for _, x := range r.Families {
		switch other := catalog.OtherProgram(x.Name); other {
		case "":
		case catalog.LMCache:
			return CodeLMCache, "The target is " + other
		default:
			return CodeNotVLLM, "The target is " + other + ", and has no metrics of vLLM."
		}
	}
	if r.Version != "" {
		return CodeLogStats, fmt.Sprintf("The server is vLLM %s and has no metrics of an engine.", r.Version)
	}
	what = "The body has neither metrics of vLLM nor those of an inference gateway"
	if i := slices.IndexFunc(r.Families, isOwn); i >= 0 {
		what += "; it has " + r.Families[i].Name + ", for example"
	}
	return CodeNotVLLM, what + "."
}

// isOwn reports whether a family says what program a body is of. Client libraries add these
// others to each.
func isOwn(x probe.Family) bool {
	return !slices.ContainsFunc([]string{"process_", "python_", "go_", "promhttp_"}, func(prefix string) bool { return strings.HasPrefix(x.Name, prefix) })
}

// foreignPrefix returns what is in front of the names of vLLM; empty where there is nothing
// like them.
func foreignPrefix(r *probe.Reading) string {
	for _, x := range r.Families {
		for _, family := range []string{"num_requests_running", "generation_tokens_total"} {
			if prefix, found := strings.CutSuffix(x.Name, family); found && prefix != "" && len(prefix) < 100 && !strings.HasPrefix(x.Source, catalog.Prefixes[0]) &&
				strings.Contains(prefix, "vllm") {
				return prefix
			}
		}
	}
	return ""
}

func judgeVersion(f *findings, s *Seen) {
	r := s.First
	switch {
	case r.Version == "" && isRay(r):
		f.pass(Server, "the agent of Ray has no /version")
	case r.Version == "" && r.VersionStatus == http.StatusOK:
		f.add(CodeVersionNone, "The server does not report its version: the answer of /version is unreadable.")
	case r.Version == "":
		f.add(CodeVersionNone, "The server does not report its version: "+answered("/version", r.VersionStatus)+".")
	case !r.Server.Released():
		f.add(CodeVersionWrong, fmt.Sprintf("The server reports the version %s, which is unreadable or older than its own metrics.", r.Version))
	case strings.ContainsAny(strings.TrimLeft(r.Version, "v0123456789."), "abcdefghijklmnopqrstuvwxyz+"):
		f.add(CodeVersionDev, fmt.Sprintf("The server is the build %s and not a release.", r.Version))
	}
}

// answered says how a path was answered.
func answered(path string, status int) string {
	if status == 0 {
		return path + " has no answer"
	}
	return path + " answers " + named(status)
}

// named is a status with its name, if it has one.
func named(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

func judgeHealth(f *findings, r *probe.Reading) {
	switch {
	case !r.HealthAsked || isRay(r):
	case r.Health == http.StatusOK:
		f.pass(Server, "/health answers 200")
	case r.Health/100 == 4:
		// A proxy that lets only the metrics pass. A dead engine is answered with 5xx.
		f.pass(Server, "%s, so the health is unknown", answered("/health", r.Health))
	default:
		f.add(CodeUnhealthy, "The engine does not report health: "+answered("/health", r.Health)+".")
	}
}

// judgeHang judges whether a hang can be seen that starts while there are no requests.
func judgeHang(f *findings, s *Seen) {
	r := s.newest()
	if isRay(r) || f.has(CodeUnhealthy) || s.ReceiverConfig.Canary.HasValue() {
		return
	}
	for _, one := range []*probe.Reading{s.First, r} {
		if one.Load != nil && *one.Load > 0 {
			f.pass(Server, "/load counts the requests, so a hang of an idle engine shows")
			return
		}
	}
	var shows []string
	if series(r.Emitted)["process_open_fds"] > 0 {
		shows = append(shows, "in process_open_fds (if each request has its own connection)")
	}
	do := "set canary: {interval: 15s, timeout: 15s} in the receiver, which needs no traffic"
	if r.Load != nil {
		shows = append(shows, "in /load (if the server counts requests)")
		do = "start the server with --enable-server-load-tracking, or " + do
	}
	what := "does not show in the metrics"
	if len(shows) > 0 {
		what = "shows only " + strings.Join(shows, " and ")
	}
	f.add(CodeHang, "A hang that starts while the engine is idle "+what+".", "to see it: "+do)
}

func judgeDefects(f *findings, r *probe.Reading) {
	sure, possible := catalog.Matters(&r.Server)
	if len(sure) == 0 {
		return
	}
	titles := map[catalog.DefectID]string{}
	for _, d := range catalog.Defects() {
		titles[d.ID] = d.Title
	}
	var details []string
	for _, id := range sure {
		details = append(details, fmt.Sprintf("%s %s#%s", titles[id], catalog.DefectsPage, id))
	}
	f.add(CodeDefects, fmt.Sprintf("%d known defects of vLLM %s affect metrics of this server; %d more may, depending on its setup.",
		len(sure), versionOf(r), len(possible)), details...)
}

// mostSkew is how far the clocks may differ. The Date has whole seconds.
const mostSkew = 5 * time.Second

func judgeClock(f *findings, r *probe.Reading) {
	at := r.Metrics.ServerTime
	if at.IsZero() {
		return
	}
	behind, ahead := r.At.Sub(at.Add(time.Second)), at.Sub(r.Metrics.Arrived)
	if off := max(behind, ahead); off > mostSkew {
		side := "behind"
		if ahead > behind {
			side = "ahead of"
		}
		f.add(CodeClock, fmt.Sprintf("The clock of the server is at least %s %s that of this machine.", off.Round(time.Second), side))
	}
}

// judgeSecond compares both scrapes.
func judgeSecond(f *findings, s *Seen, t *Target) {
	first, second := s.First, s.Second
	if second == nil {
		return
	}
	switch {
	case second.Outcome != "ok":
		f.add(CodeSecondFailed, "The second scrape failed: "+sentence(second.Message))
		return
	case second.Dropped["other_process"] > 0:
		f.add(CodeReplicas, "Two server processes with different starts answered the two scrapes.")
		return
	case !first.ProcessStart.IsZero() && !second.ProcessStart.IsZero() && second.ProcessStart.After(first.ProcessStart.Add(time.Second)):
		f.add(CodeRestarted, fmt.Sprintf("The server process restarted at %s.", second.ProcessStart.UTC().Format(time.RFC3339)))
		return
	}
	if fell := fallen(first.Emitted, second.Emitted); len(fell) > 0 {
		f.add(CodeFell, fmt.Sprintf("%d counters are lower in the second scrape.", len(fell)), fell...)
	}
	if t.Kind == "vllm" && first.ProcessStart.IsZero() && !isRay(first) {
		f.add(CodeNoStart, "The body lacks the start of the server process.")
	}
}

// judgeRole recognises servers that only prefill or only decode, by what their requests did.
func judgeRole(f *findings, s *Seen) {
	r := s.newest()
	gaps, finished := total(r.Emitted, "vllm.inter_token_latency"), total(r.Emitted, "vllm.request.success")
	connector := slices.Contains(r.Server.Setups, "connector")
	sources := byAttribute(r.Emitted, "vllm.prompt_tokens_by_source", "source")
	prompt := 0.0
	for _, n := range sources {
		prompt += n
	}
	switch moved := sources["external_kv_transfer"]; {
	case connector && finished >= fewRequests && gaps == 0:
		f.add(CodePrefill, fmt.Sprintf("All of %.0f requests ended with their first token.", finished))
	case prompt > 0 && moved/prompt > mostlyMoved && !isRay(r):
		// The agent of Ray counts all tokens under one source.
		f.add(CodeDecode, fmt.Sprintf("%.0f %% of the prompt tokens came from other servers.", 100*moved/prompt))
	}
}

const (
	// fewRequests is how many requests are needed to recognise a role.
	fewRequests = 10
	// mostlyMoved is the share of prompt tokens from other servers that a server has which
	// only decodes.
	mostlyMoved = 0.9
)
