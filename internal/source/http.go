package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// HTTPConfig says which URL lists static pods.
type HTTPConfig struct {
	URL            string
	Header         http.Header
	NodeName       string
	CheckFrequency time.Duration
}

// HTTPDeps are what an HTTP source needs from outside.
type HTTPDeps struct {
	Out    chan<- pod.Snapshot
	Client *http.Client // with a timeout
	Clock  clock.WithTicker
	Log    *slog.Logger
	// BadFile, where set, hears of each new problem with the URL, once.
	BadFile func(url string, err error)
}

// HTTP is the source of static pods behind a URL. While the URL cannot be read or makes no
// sense, its last good pods stay.
type HTTP struct {
	cfg  HTTPConfig
	deps HTTPDeps

	taken       *answer // the last that was taken in, nil for none yet
	lastProblem string
}

// answer is what the URL said, with what allows to ask whether it still says so.
type answer struct {
	data       []byte
	etag, date string
}

func (a *answer) same(b *answer) bool { return a != nil && bytes.Equal(a.data, b.data) }

func (a *answer) condition(header http.Header) {
	if a != nil && a.etag != "" {
		header.Set("If-None-Match", a.etag)
	}
	if a != nil && a.date != "" {
		header.Set("If-Modified-Since", a.date)
	}
}

// NewHTTP asks for nothing yet.
func NewHTTP(cfg HTTPConfig, deps HTTPDeps) (*HTTP, error) {
	if cfg.URL == "" || cfg.NodeName == "" || cfg.CheckFrequency <= 0 {
		return nil, errors.New("http source: URL, node name and check frequency are needed")
	}
	if deps.Out == nil || deps.Client == nil || deps.Clock == nil || deps.Log == nil {
		return nil, errors.New("http source: channel, client, clock and log are needed")
	}
	return &HTTP{cfg: cfg, deps: deps}, nil
}

// Run asks at once and then at regular intervals. The first snapshot is sent when the URL
// could be read for the first time.
func (h *HTTP) Run(ctx context.Context) error {
	ticker := h.deps.Clock.NewTicker(h.cfg.CheckFrequency)
	defer ticker.Stop()
	for {
		err := h.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		h.report(err)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (h *HTTP) poll(ctx context.Context) error {
	answer, err := h.get(ctx)
	if err != nil || answer == nil {
		return err
	}
	if !h.taken.same(answer) {
		if err := h.take(ctx, answer.data); err != nil {
			return err
		}
	}
	// Only now: a bad answer must not be taken for unchanged the next time.
	h.taken = answer
	return nil
}

// take makes pods of a new answer and sends them.
func (h *HTTP) take(ctx context.Context, data []byte) (err error) {
	var m manifest
	if len(bytes.TrimSpace(data)) > 0 { // an empty answer wants nothing to run
		if m, err = decode(data); err != nil {
			return fmt.Errorf("read pods: %w", err)
		}
		origin := pod.Origin{Source: pod.SourceHTTP, Location: h.cfg.URL, NodeName: h.cfg.NodeName}
		if err := prepare(&m, origin, false); err != nil {
			return err
		}
		if err := refuseTwice(&m); err != nil {
			return err
		}
	}
	select {
	case h.deps.Out <- pod.Snapshot{Source: pod.SourceHTTP, Pods: m.pods}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get returns nil where the server says that nothing has changed since the last time.
func (h *HTTP) get(ctx context.Context) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.cfg.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if h.cfg.Header != nil {
		request.Header = h.cfg.Header.Clone()
	}
	h.taken.condition(request.Header)
	response, err := h.deps.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotModified:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("get %s: %s", h.cfg.URL, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("answer is larger than %d bytes", maxManifest)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", h.cfg.URL, err)
	}
	return &answer{data, response.Header.Get("ETag"), response.Header.Get("Last-Modified")}, nil
}

// report passes on a problem the first time it is seen, and its end.
func (h *HTTP) report(err error) {
	switch {
	case err == nil && h.lastProblem != "":
		h.deps.Log.Info("pods can be read again", "url", h.cfg.URL)
		h.lastProblem = ""
	case err != nil && h.lastProblem != err.Error():
		h.lastProblem = err.Error()
		h.deps.Log.Error("pods cannot be read; the last good ones stay", "url", h.cfg.URL, "err", err)
		if h.deps.BadFile != nil {
			h.deps.BadFile(h.cfg.URL, err)
		}
	}
}

func refuseTwice(m *manifest) error {
	names := map[string]bool{}
	for name := range m.all() {
		if names[name] {
			return fmt.Errorf("%s is there twice", name)
		}
		names[name] = true
	}
	return nil
}
