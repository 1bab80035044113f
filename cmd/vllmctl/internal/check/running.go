package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Running returns the configurations that process 1, a collector in a container, reads, in its order. proc is /proc. An error is a
// sentence with what to do.
func Running(proc string) ([]string, error) {
	const instead = "; name its files with --config"
	if runtime.GOOS != "linux" {
		return nil, errors.New("--running needs Linux" + instead)
	}
	line, err := os.ReadFile(filepath.Join(proc, "1", "cmdline"))
	if err != nil {
		return nil, fmt.Errorf("the command line of process 1 cannot be read%s: %w", instead, err)
	}
	arguments := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	name := printable(filepath.Base(arguments[0]))
	var configs, sets []string
	for i := 1; i < len(arguments); i++ {
		flag, value, has := strings.Cut(arguments[i], "=")
		if flag != "--config" && flag != "--set" {
			continue
		}
		if !has && i+1 < len(arguments) {
			i++
			value = arguments[i]
		}
		if flag == "--config" {
			configs = append(configs, value)
		} else if key, to, has := strings.Cut(value, "="); has {
			// As the collector reads it, after all files.
			sets = append(sets, "yaml:"+strings.ReplaceAll(strings.TrimSpace(key), ".", "::")+": "+strings.TrimSpace(to))
		}
	}
	switch {
	case name == "vllmctl" || len(configs) == 0 && !strings.Contains(name, "otel") && !strings.Contains(name, "collector"):
		return nil, fmt.Errorf("process 1 is %q and not a collector; run this in the collector's container, or name its files with --config", name)
	case len(configs) == 0:
		return nil, fmt.Errorf("process 1, %q, has no --config on its command line%s", name, instead)
	}
	return append(configs, sets...), nil
}
