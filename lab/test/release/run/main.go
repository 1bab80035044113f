// Command run carries out the steps of "make release" that need more than goreleaser.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/registry"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/release"
)

const usage = `run: a step of "make release", in the root of the checkout:

  run set-version VERSION              writes another version into every place that names it
  run ready [-publish] [-notes FILE]   stops unless this commit may be released
  run charts DIST                      packs the charts into the folder, and adds them to its checksums
  run push-charts DIST REPOSITORY      pushes them to an OCI registry, with the credentials of docker or helm
`

func main() {
	steps := map[string]func(args []string) error{"set-version": setVersion, "ready": ready, "charts": charts, "push-charts": pushCharts}
	if len(os.Args) < 2 || steps[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := steps[os.Args[1]](os.Args[2:]); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(os.Stderr, "release:", line)
		}
		os.Exit(1)
	}
}

func setVersion(args []string) error {
	if len(args) != 1 {
		return errors.New("set-version: name one version, for example 0.3.0")
	}
	changed, err := release.SetVersion(".", args[0])
	for _, file := range changed {
		fmt.Println("   ", file)
	}
	return err
}

func ready(args []string) error {
	flags := flag.NewFlagSet("ready", flag.ExitOnError)
	publish := flags.Bool("publish", false, "the commit must have the tag of the version")
	notes := flags.String("notes", "", "the `file` that gets the section of the changelog")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := release.Version(".")
	if err != nil {
		return err
	}
	commit, err := release.ReadCommit(".")
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	if err := release.Ready(v, commit, string(changelog), *publish); err != nil {
		return err
	}
	if *publish {
		if err := release.BuiltFrom("dist", commit.Revision); err != nil {
			return err
		}
	}
	if *notes == "" {
		return nil
	}
	text, err := release.Notes(string(changelog), v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*notes), 0o755); err != nil {
		return err
	}
	return os.WriteFile(*notes, []byte(text), 0o644)
}

func charts(args []string) error {
	if len(args) != 1 {
		return errors.New("charts: name the folder that gets the archives")
	}
	v, at, err := ofCommit()
	if err != nil {
		return err
	}
	_, err = release.PackCharts(".", args[0], v, at)
	return err
}

func pushCharts(args []string) error {
	if len(args) != 2 {
		return errors.New("push-charts: name the folder of the archives, and the repository, for example ghcr.io/otelcol-vllm/charts")
	}
	v, at, err := ofCommit()
	if err != nil {
		return err
	}
	client, err := registry.NewClient(registry.ClientOptWriter(os.Stdout))
	if err != nil {
		return err
	}
	return release.PushCharts(client, args[0], v, args[1], at)
}

// ofCommit is the version of the release, and the time of its commit.
func ofCommit() (string, time.Time, error) {
	v, err := release.Version(".")
	if err != nil {
		return "", time.Time{}, err
	}
	at, err := release.CommitTime(".")
	return v, at, err
}
