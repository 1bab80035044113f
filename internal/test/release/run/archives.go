package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/release"
)

func archives(args []string) error {
	flags := flag.NewFlagSet("archives", flag.ExitOnError)
	dist := flags.String("dist", "dist", "the `folder` that goreleaser wrote")
	platforms := flags.String("platforms", strings.Join(release.Platforms, ","), "the `platforms` that must be there, and no others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := release.Version(".")
	if err != nil {
		return err
	}
	checked, err := release.CheckDist(*dist, v, strings.Split(*platforms, ","))
	for _, line := range checked {
		fmt.Println("   ", line)
	}
	if err != nil {
		return err
	}
	files, err := release.Whole(".")
	if err != nil {
		return err
	}
	var wrong []error
	for _, archive := range release.Archives(*dist, v, strings.Split(*platforms, ",")) {
		wrong = append(wrong, release.CheckWhole(archive, files))
	}
	return errors.Join(wrong...)
}
