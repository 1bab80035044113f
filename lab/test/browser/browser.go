// Package browser drives a headless Chromium, which "make chromium" fetches.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Browser is a headless Chromium that is driven through two pipes: it opens no port.
type Browser struct {
	process *exec.Cmd
	to      *os.File
	home    string
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	// gone is closed when the browser writes nothing more.
	gone chan struct{}
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts the Chromium that "make chromium" unpacked to a directory. Fonts are
// those of the directory alone, so that a picture is the same on each machine.
func Start(ctx context.Context, unpacked string) (*Browser, error) {
	unpacked, err := filepath.Abs(unpacked)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(unpacked, "usr", "lib", "chromium", "chromium-headless-shell")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("there is no Chromium, run make chromium: %w", err)
	}
	home, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		return nil, err
	}
	fonts := fmt.Sprintf("<?xml version=\"1.0\"?><fontconfig><dir>%s/usr/share/fonts</dir><cachedir>%s</cachedir></fontconfig>", unpacked, home)
	if err := os.WriteFile(filepath.Join(home, "fonts.conf"), []byte(fonts), 0o600); err != nil {
		return nil, err
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	libraries, err := filepath.Glob(filepath.Join(unpacked, "usr", "lib", "*-linux-gnu"))
	if err != nil {
		return nil, err
	}
	folders := []string{filepath.Join(unpacked, "usr", "lib")}
	for _, l := range libraries {
		folders = append(folders, l, filepath.Join(l, "pulseaudio"))
	}
	path := strings.Join(folders, ":")
	// #nosec G204 -- the program is the one that the Makefile unpacked.
	process := exec.CommandContext(ctx, program, "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text", "--disable-background-networking",
		"--disable-dev-shm-usage", "--disable-crash-reporter", "--no-proxy-server", "--lang=en-US",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--user-data-dir="+home, "about:blank")
	process.Env = append(os.Environ(), "HOME="+home, "LD_LIBRARY_PATH="+path, "FONTCONFIG_FILE="+filepath.Join(home, "fonts.conf"), "TZ=UTC")
	process.ExtraFiles = []*os.File{theirs, ours}
	var errs bytes.Buffer
	process.Stderr = &errs
	process.WaitDelay = 5 * time.Second
	if err := process.Start(); err != nil {
		return nil, err
	}
	_, _ = theirs.Close(), ours.Close()
	b := &Browser{process: process, to: to, home: home, waiting: map[int]chan reply{}, gone: make(chan struct{})}
	go b.read(from)
	if err := b.open(ctx); err != nil {
		b.Stop()
		return nil, fmt.Errorf("chromium does not answer: %w: %.2000s", err, errs.String())
	}
	return b, nil
}

// open attaches to a page of the browser.
func (b *Browser) open(ctx context.Context) error {
	var target struct {
		TargetID  string `json:"targetId"`
		SessionID string `json:"sessionId"`
	}
	if err := b.Call(ctx, "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	if err := b.Call(ctx, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target); err != nil {
		return err
	}
	b.session = target.SessionID
	return b.Call(ctx, "Emulation.setTimezoneOverride", map[string]any{"timezoneId": "UTC"}, nil)
}

// read hands the replies of the browser to those who wait for them.
func (b *Browser) read(from io.ReadCloser) {
	defer close(b.gone)
	defer from.Close()
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &r) != nil || r.ID == 0 {
			continue // An event; no event is of interest.
		}
		b.mu.Lock()
		waits := b.waiting[r.ID]
		delete(b.waiting, r.ID)
		b.mu.Unlock()
		if waits != nil {
			waits <- r
		}
	}
}

// Call sends a command and decodes its result into the value that result points to.
func (b *Browser) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	waits := make(chan reply, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = waits
	b.mu.Unlock()
	command := map[string]any{"id": id, "method": method, "params": params}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	line, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(line, 0)); err != nil {
		return err
	}
	select {
	case r := <-waits:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(r.Result, result)
	case <-b.gone:
		return errors.New("the browser has ended")
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// Size sets the size of the page in pixels.
func (b *Browser) Size(ctx context.Context, width, height int, scale float64) error {
	return b.Call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": scale, "mobile": false,
	}, nil)
}

// Evaluate runs a script on the page and decodes what it returns.
func (b *Browser) Evaluate(ctx context.Context, script string, result any) error {
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := b.Call(ctx, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &r)
	switch {
	case err != nil:
		return err
	case r.Exception != nil:
		return fmt.Errorf("a script of the page failed: %s", r.Exception.Text)
	case result == nil || r.Result.Value == nil:
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// screenshot returns a picture of a part of the page.
func (b *Browser) screenshot(ctx context.Context, width, from, to int, format string) ([]byte, error) {
	var shot struct {
		Data string `json:"data"`
	}
	// Of 100. Charts of thin lines are still sharp, and a board has less than 200 KB.
	const quality = 70
	err := b.Call(ctx, "Page.captureScreenshot", map[string]any{
		"format": format, "quality": quality, "clip": map[string]any{"x": 0, "y": from, "width": width, "height": to - from, "scale": 1},
	}, &shot)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(shot.Data)
}

// Picture takes pictures of a part of the page until two in a row are the same: on a busy machine parts of one can
// still be blank.
func (b *Browser) Picture(ctx context.Context, width int, part [2]int, format string) ([]byte, error) {
	var last []byte
	for range 10 {
		picture, err := b.screenshot(ctx, width, part[0], part[1], format)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(picture, last) {
			return picture, nil
		}
		last = picture
	}
	return nil, errors.New("no two pictures in a row are the same")
}

// Stop ends the browser and removes what it wrote.
func (b *Browser) Stop() {
	_ = b.to.Close()
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
	_ = os.RemoveAll(b.home)
}
