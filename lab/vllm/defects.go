//go:build linux

package main

import (
	"context"
	"flag"
	"os"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/defects"
)

func showDefects(ctx context.Context, args []string) error {
	var i installed
	flags := flag.NewFlagSet("defects", flag.ExitOnError)
	i.flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := i.resolve(); err != nil {
		return err
	}
	return defects.Run(ctx, i.folder, i.version, flags.Args(), os.Stdout)
}
