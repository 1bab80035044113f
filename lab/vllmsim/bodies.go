package vllmsim

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Scenario is one folder of testdata/: a server scraped twice.
type Scenario struct {
	// Name is the folder: dialect and version.
	Name   string
	Config Config
}

// Scenarios returns the scenarios of testdata/, in order. Each has its own seed.
func Scenarios() []Scenario {
	scenarios := []Scenario{
		{"v0-0.5.0", Config{Dialect: "v0", Version: "0.5.0", Model: "facebook/opt-125m", MaxModelLen: 2048}},
		{"v0-0.6.6", Config{Dialect: "v0", Version: "0.6.6"}},
		{"v1-0.8.5", Config{Dialect: "v1", Version: "0.8.5"}},
		{"v1-multiproc-0.10.2", Config{Dialect: "v1-multiproc", Version: "0.10.2", APIServers: 2, LoRA: true}},
		{"v1-0.13.0", Config{Dialect: "v1", Version: "0.13.0"}},
		{"v1-0.20.0", Config{Dialect: "v1", Version: "0.20.0"}},
		{"v1-0.24.0", Config{Dialect: "v1", Version: "0.24.0", Engines: 2, LoRA: true, SpecDecode: true, FlopsCounters: true}},
		{"ray-old-0.6.3", Config{Dialect: "ray-old", Version: "0.6.3", MaxModelLen: 16384}},
		{"ray-new-0.20.0", Config{Dialect: "ray-new", Version: "0.20.0"}},
		{"rust-0.24.0", Config{Dialect: "rust", Version: "0.24.0"}},
	}
	for i := range scenarios {
		scenarios[i].Config.Seed = uint64(100 + i)
	}
	return scenarios
}

const (
	// The first body shows a server that has been busy for firstBody, the
	// second the same server betweenBodies later.
	firstBody     = 10 * time.Minute
	betweenBodies = 15 * time.Second
)

// Files returns the scenario's files by name.
func (s Scenario) Files() (map[string][]byte, error) {
	server, err := New(s.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	target := server.Targets()[0]
	server.Advance(firstBody)
	first, contentType, err := target.Body()
	if err != nil {
		return nil, err
	}
	server.Advance(betweenBodies)
	second, _, err := target.Body()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"metrics.txt":   first,
		"metrics-2.txt": second,
		"content-type":  []byte(contentType + "\n"),
	}, nil
}

// WriteBodies writes all scenarios below dir and returns the number of files.
func WriteBodies(dir string) (int, error) {
	written := 0
	for _, s := range Scenarios() {
		files, err := s.Files()
		if err != nil {
			return written, err
		}
		folder := filepath.Join(dir, s.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return written, err
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
				return written, err
			}
			written++
		}
	}
	return written, nil
}
