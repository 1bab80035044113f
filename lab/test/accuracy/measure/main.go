// Command measure plays the stories of lab/test/accuracy and writes
// docs/why/accuracy.md. It runs in the root of the repository.
//
// Results are kept below build/accuracy, so that a run that was ended continues when it
// is started again. It fails where something is broken, never because the diagnosis is bad.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// Stories make much garbage and hold little. Two workers with ten healthy stories need 3 GB
	// at most with this; 1000 was no faster, and needed 5.5 to 6 GB.
	debug.SetGCPercent(400)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

type options struct {
	size, set, story, shared, date, dir, part, tapes, before, beforeCommit, method string
	workers                                                                        int
	minutes                                                                        float64
	knees, only, tapesOnly, alerts                                                 bool
}

func run(ctx context.Context) error {
	var o options
	flag.StringVar(&o.size, "size", "published", "how much is played: published (an hour on two cores) or tiny (some minutes)")
	flag.StringVar(&o.set, "set", string(stories.HeldOut), "heldout, which writes the page, or tuning, which prints tables only")
	flag.StringVar(&o.story, "story", "", "play one story again and print its lines")
	flag.StringVar(&o.shared, "shared", "../shared", "the folder with recorded traffic")
	flag.StringVar(&o.date, "date", time.Now().UTC().Format("2006-01-02"), "the date on the page")
	flag.StringVar(&o.dir, "journal", "build/accuracy", "the folder in which results are kept")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many stories are played at the same time")
	flag.Float64Var(&o.minutes, "minutes", 0, "begin no story after so many minutes; 0 means no limit")
	flag.StringVar(&o.part, "part", "1/1", "play only a part, 2/3 for example, so that several machines share a run; put their journals one behind the other and use -page")
	flag.StringVar(&o.tapes, "tapes", "", "a folder in which what the servers showed is kept, so that a change of the diagnosis is measured without simulating them again")
	flag.BoolVar(&o.tapesOnly, "tapes-only", false, "play only the stories that have a tape, and say how many have none")
	flag.StringVar(&o.method, "method", "", "measure what others would take instead of the processor, on the tapes of -tapes: nsigma, nsigma-quiet, or wire, which are the rules on vLLM's own names. Only its journal is written")
	flag.StringVar(&o.before, "before", "", "a journal of another method on the same stories, with which this one is compared")
	flag.StringVar(&o.beforeCommit, "before-commit", "", "the commit at which the journal of -before was made")
	flag.BoolVar(&o.knees, "knees", false, "find the knees and print their table, which is then "+kneesFile)
	flag.BoolVar(&o.alerts, "alerts", false, "play only healthy stories, and write how often each shipped alert fires in them into "+alertsFile)
	flag.BoolVar(&o.only, "page", false, "write the page from the results that are there, and play nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: there are no arguments, only flags", flag.Arg(0))
	}
	if o.tapesOnly && o.tapes == "" {
		return errors.New("-tapes-only: want -tapes as well, the folder of the tapes")
	}
	rival, err := rivalOf(o.method)
	if err != nil {
		return err
	}
	if rival != nil && (o.tapes == "" || o.alerts) {
		return errors.New("-method: want -tapes as well, the folder of the tapes, and no -alerts")
	}
	o.tapesOnly = o.tapesOnly || rival != nil
	if (o.before == "") != (o.beforeCommit == "") {
		return errors.New("-before and -before-commit: want both or neither, because the page says which commit it compares with")
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run it in the root of the repository, where go.mod is")
	}
	size, there := stories.Sizes[o.size]
	if !there {
		return fmt.Errorf("-size %q: want tiny or published", o.size)
	}
	if o.set != string(stories.HeldOut) && o.set != string(stories.Tuning) {
		return fmt.Errorf("-set %q: want heldout or tuning", o.set)
	}
	stories.Shared = o.shared
	_, err = os.Stat(filepath.Join(o.shared, "traces"))
	recorded := err == nil
	switch {
	case o.knees:
		return knees(ctx)
	case o.story != "":
		return one(ctx, o.story, recorded)
	}
	plans := stories.All(stories.Set(o.set), size, recorded)
	if o.alerts {
		plans = slices.DeleteFunc(plans, func(p stories.Plan) bool { return p.Kind != stories.Healthy })
	}
	return measure(ctx, o, rival, plans, recorded)
}

// measure plays a set and writes the page.
func measure(ctx context.Context, o options, rival *rivalMethod, plans []stories.Plan, recorded bool) error {
	fingerprint, err := Fingerprint(".")
	path := filepath.Join(o.dir, o.set+".jsonl")
	if rival != nil {
		fingerprint, err = rival.fingerprint(".")
		path = rival.journal(o.dir, o.set)
	}
	if err != nil {
		return err
	}
	if !recorded {
		fmt.Printf("%s/traces is not there: nothing is played on recorded traffic\n", o.shared)
	}
	open := OpenJournal
	if o.only {
		open = ReadJournal
	}
	journal, err := open(path, fingerprint)
	if err != nil {
		return err
	}
	defer journal.Close()
	player, taped := judge.Play, func(string) bool { return false }
	if o.tapes != "" {
		kept, err := newTapes(o.tapes, ".")
		if err != nil {
			return err
		}
		if rival != nil {
			kept.open = rival.open
		}
		player = kept.play
		if o.tapesOnly {
			player = kept.replay
		}
		taped = kept.has
	}
	r := Run{
		Player: player, Journal: journal, Workers: o.workers, Log: os.Stdout, Now: time.Now, CPU: cpu,
	}
	if o.minutes > 0 {
		r.Until = time.Now().Add(time.Duration(o.minutes * float64(time.Minute)))
	}
	var records []Record
	var broken error
	if o.only {
		for i := range plans {
			if record, there := journal.Get(&plans[i].Meta); there {
				records = append(records, record)
			}
		}
	} else {
		mine, err := part(plans, o.part)
		if err != nil {
			return err
		}
		if o.tapesOnly {
			some := slices.DeleteFunc(slices.Clone(mine), func(p stories.Plan) bool { return !taped(p.Name) })
			fmt.Printf("%d of %d stories have no tape and are left out\n", len(mine)-len(some), len(mine))
			mine = some
		}
		records, broken = r.Play(ctx, mine)
	}
	if len(records) == 0 {
		return errors.Join(errors.New("there are no results"), broken)
	}
	if o.alerts {
		return errors.Join(writeAlerts(ctx, &o, records), broken)
	}
	origin := Origin{
		Size: o.size, Commit: commit(), Print: fingerprint, Date: o.date, Planned: len(plans), Recorded: recorded,
		Machine: fmt.Sprintf("%s/%s with %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	beside, err := o.beside(ctx, ".")
	if err != nil {
		return errors.Join(err, broken)
	}
	if err := ticketed(ctx, o.workers, records); err != nil {
		return errors.Join(err, broken)
	}
	fmt.Print(Overview(origin, records, beside))
	// A run that was interrupted leaves the page as it is; -page writes what is there.
	if o.set == string(stories.HeldOut) && rival == nil && ctx.Err() == nil {
		if err := write(origin, records, beside); err != nil {
			return errors.Join(err, broken)
		}
	}
	return broken
}

// beside reads the results of other methods.
func (o *options) beside(ctx context.Context, root string) (out Beside, err error) {
	if o.method == "" {
		if out.Rivals, err = readRivals(o.dir, o.set, root); err != nil {
			return out, err
		}
	}
	if o.before != "" {
		// Its fingerprint is that of other sources, which are not here to compare with.
		journal, err := ReadJournal(o.before, "")
		if err != nil {
			return out, fmt.Errorf("-before: %w", err)
		}
		defer journal.Close()
		out.Before = &Before{Commit: o.beforeCommit, Records: journal.All()}
		return out, ticketed(ctx, o.workers, out.Before.Records)
	}
	return out, nil
}

// part is every n-th of the plans: "2/3" is the second of three parts.
func part(plans []stories.Plan, text string) ([]stories.Plan, error) {
	var k, n int
	if got, err := fmt.Sscanf(text, "%d/%d", &k, &n); err != nil || got != 2 || k < 1 || k > n {
		return nil, fmt.Errorf("-part %q: want 1/2 or 2/2, for example", text)
	}
	var out []stories.Plan
	for i := k - 1; i < len(plans); i += n {
		out = append(out, plans[i])
	}
	return out, nil
}

// The page for readers, and that with all tables. fromDocs is the way to the root from the first.
const pageFile, resultsFile, fromDocs = "docs/why/accuracy.md", "lab/test/accuracy/results.md", "../../"

// dataFile has all tables for programs.
const dataFile = "lab/test/accuracy/results.tsv"

// realFile is the page of the real vLLM.
const realFile = "docs/why/real-vllm.md"

// write writes both. The parts of others are kept.
func write(o Origin, records []Record, beside Beside) error {
	old, err := os.ReadFile(resultsFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	beside.Recordings = recordingsRight(string(old))
	if played, err := os.ReadFile(realFile); err == nil {
		beside.Real = realShares(string(played))
	}
	all := sections(o, records, beside)
	fmt.Println("writes", pageFile, resultsFile, "and", dataFile)
	return errors.Join(os.WriteFile(resultsFile, []byte(Results(o, records, all, string(old))), 0o644), os.WriteFile(dataFile, []byte(Data(all)), 0o644),
		os.WriteFile(pageFile, []byte(Page(o, records, beside)), 0o644))
}

// one plays one story and prints the lines as "vllmsim judge" does.
func one(ctx context.Context, name string, recorded bool) error {
	for _, set := range []stories.Set{stories.HeldOut, stories.Tuning} {
		plans := stories.All(set, stories.Sizes["published"], recorded)
		i := slices.IndexFunc(plans, func(p stories.Plan) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		story, err := plans[i].Make()
		if err != nil {
			return err
		}
		played, err := judge.Play(ctx, story)
		if err != nil {
			return err
		}
		out := json.NewEncoder(os.Stdout)
		if err := out.Encode(plans[i].Meta); err != nil {
			return err
		}
		for _, l := range played.Lines {
			if err := out.Encode(l); err != nil {
				return err
			}
		}
		return errors.Join(out.Encode(played.Alarms), out.Encode(played.Sought))
	}
	return fmt.Errorf("-story %q: there is no such story (stories on recorded traffic need -shared)", name)
}

// commit is the commit that is checked out.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
