package check

import (
	"context"
	"errors"
	"time"
)

// Settings are the choices for a check of a configuration.
type Settings struct {
	Delay      time.Duration
	Strict     bool
	KubeConfig string
}

// Configured checks a configuration.
func Configured(context.Context, []string, Settings) (*Report, error) { return nil, errors.New("todo") }
