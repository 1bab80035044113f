package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/recording"
)

func replay(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var options recording.PlayerOptions
	flags := newFlags("replay", "FILE|DIR", "Serves a recorded body, or a folder's bodies in the order of their names; the last one stays.", stderr)
	listen := flags.String("listen", defaultListen, "loopback address and port")
	limit := flags.Duration("for", 0, "stop after this time (0: when interrupted)")
	flags.StringVar(&options.ContentType, "content-type", "", "content type (default: as recorded, else OpenMetrics where the body ends in # EOF, else text)")
	flags.DurationVar(&options.Every, "every", 0, "how long each body stays (0: the next one with every request)")
	flags.BoolVar(&options.Loop, "loop", false, "start over after the last body")
	flags.StringVar(&options.Version, "vllm-version", "", "answer of /version (default: as recorded)")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usagef("want one FILE or DIR, got %d arguments", len(rest))
	}
	if options.Every < 0 {
		return usagef("-every %s is below 0", options.Every)
	}
	player, err := recording.Open(rest[0], options)
	if err != nil {
		return err
	}
	ctx, cancel := bounded(ctx, *limit)
	defer cancel()
	listeners, err := vllmsim.Listen(ctx, *listen, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "vllmsim replay: %d bodies of %s, metrics at %s\n",
		player.Len(), rest[0], vllmsim.Where(metricsURLs(vllmsim.URLs(listeners))))
	return vllmsim.Serve(ctx, listeners, []http.Handler{player})
}
