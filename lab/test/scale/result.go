package scale

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// limits is how the limits were found.
type limits struct {
	// FirstTargets and FirstSeries are those of the first start.
	FirstTargets int `json:"first_targets"`
	FirstSeries  int `json:"first_series"`
	// Targets and Series are the numbers that the logs named, 0 without a warning.
	Targets int `json:"targets"`
	Series  int `json:"series"`
	// Kept is how many targets each shard keeps.
	Kept []int `json:"kept"`
	// Lives is the first process that was measured.
	Lives int `json:"lives"`
}

// counters is the comparison of the scraped counters.
type counters struct {
	// Answers are those that arrived, Repeated came twice, and Silent
	// engines never came.
	Answers  int `json:"answers"`
	Repeated int `json:"repeated"`
	Silent   int `json:"silent"`
	// Strangers are answers to another shard than the hash says.
	Strangers int `json:"strangers"`
	// Series are the counters of all engines, in which Resets start times changed and Falls points
	// fell without.
	Series int `json:"series"`
	Resets int `json:"resets"`
	Falls  int `json:"falls"`
	// Crossed points fell where two processes read an engine at nearly the same time, and the
	// scrape that had begun first was answered last.
	Crossed int `json:"crossed"`
	// Fell are examples of such points.
	Fell []string `json:"fell,omitempty"`
	// Compared points were compared with the truth, and Wrong ones differ from it.
	Compared int `json:"compared"`
	Wrong    int `json:"wrong"`
	// True are the increments of the compared counters from the first to the last answer of each
	// engine; Lost and Doubled what a backend would have too little or too much.
	True    float64 `json:"true"`
	Lost    float64 `json:"lost"`
	Doubled float64 `json:"doubled"`
	// Missing are the answers that never arrived, by process.
	Missing []missing `json:"missing"`
}

// missing are answers to a process that never arrived.
type missing struct {
	Life    int    `json:"life"`
	Member  int    `json:"member"`
	How     string `json:"how"`
	Answers int64  `json:"answers"`
}

// objectiveSums is the comparison of vllm.slo.valid, which each process begins at zero.
type objectiveSums struct {
	// True are the requests, ByStart and OneSeries what backends count (see counted).
	True      float64 `json:"true"`
	ByStart   float64 `json:"by_start"`
	OneSeries float64 `json:"one_series"`
	// Agree are the engines of which ByStart is what its processes have read.
	Agree  int `json:"agree"`
	Differ int `json:"differ"`
	// MostOver is the greatest ratio of OneSeries to the truth.
	MostOver float64  `json:"most_over"`
	Examples []string `json:"examples,omitempty"`
}

// Result is what a run has shown. It is the content of scale.json.
type Result struct {
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Machine string    `json:"machine"`
	Engines int       `json:"engines"`
	Pools   int       `json:"pools"`
	// Interval, Window and Away are those of the options, in seconds.
	Interval float64 `json:"interval"`
	Window   float64 `json:"window"`
	Away     float64 `json:"away"`
	// Limits is how the limits were raised.
	Limits    limits        `json:"limits"`
	Counters  counters      `json:"counters"`
	Objective objectiveSums `json:"objective"`
	Actions   []outcome     `json:"actions"`
	Usage     []usage       `json:"usage"`
	// LongestStop is the longest time from SIGTERM to the end, in seconds.
	LongestStop float64 `json:"longest_stop"`
	// FirstScrape is the longest time from the ready process to its first scrape, in seconds.
	FirstScrape float64 `json:"first_scrape"`
	// Requests and Bytes are what the backend took, without compression, and Points the points.
	Requests int `json:"requests"`
	Bytes    int `json:"bytes"`
	Points   int `json:"points"`
	// Left are the answers that were in the queues of the removed shards when the others ended.
	Left int64 `json:"left"`
	// Complaints counts warnings and errors in the logs.
	Complaints map[string]int `json:"complaints"`
	Failures   []string       `json:"failures"`
	Samples    []sample       `json:"samples"`
}

// fill notes what the run was.
func (x *Result) fill(r *run) {
	x.Began, x.Seconds, x.Engines = r.began, time.Since(r.began).Seconds(), r.Engines
	x.Machine = machine()
	x.Interval, x.Window, x.Away = r.Interval.Seconds(), r.Window.Seconds(), r.Away.Seconds()
	taken := r.backend.Taken()
	x.Requests, x.Bytes, x.Points = taken.Requests-r.before.Requests, taken.Bytes-r.before.Bytes, r.account.points
	x.Complaints, x.Samples = r.complaints(), r.samples
	models := map[string]bool{}
	for i := range r.engines {
		models[r.engines[i].model] = true
	}
	x.Pools = len(models)
}

// machine says what kind of machine this is.
func machine() string {
	name := runtime.GOARCH
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := processorName.FindSubmatch(content); found != nil {
			name = string(bytes.TrimSpace(found[1]))
		}
	}
	return fmt.Sprintf("%d processors (%s), %s", runtime.NumCPU(), name, runtime.Version())
}

var processorName = regexp.MustCompile(`(?m)^model name\s*:(.*)$`)

// write puts the result into a folder.
func (x *Result) write(dir string) error {
	picture, err := x.picture()
	if err != nil {
		return err
	}
	return fleet.Save(dir, "scale.json", x, map[string][]byte{pictureName: picture})
}
