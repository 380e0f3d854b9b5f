package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// HTTPConfig is the configuration of an HTTP source.
type HTTPConfig struct {
	URL            string
	Header         http.Header
	NodeName       string
	CheckFrequency time.Duration
}

// HTTPDeps are the dependencies of an HTTP source.
type HTTPDeps struct {
	Out    chan<- pod.Snapshot
	Client *http.Client // with a timeout
	Clock  clock.WithTicker
	Log    *slog.Logger
	// OnError, if set, is called once for each new error of the URL.
	OnError func(url string, err error)
	// Runtime, if set, has the pods that run already. They keep their UIDs.
	Runtime Runtime
}

// HTTP is the source of the static pods of a URL. While the URL cannot be read, or its content is invalid,
// the last valid pods stay.
type HTTP struct {
	cfg  HTTPConfig
	deps HTTPDeps
	name string // the URL without its password, for logs and events

	last      *response // the last valid one, nil if there was none
	lastError string
	adopter   *adopter
}

// response is the content of the URL, with the headers for conditional requests.
type response struct {
	data       []byte
	etag, date string
}

func (a *response) same(b *response) bool { return a != nil && bytes.Equal(a.data, b.data) }

func (a *response) setConditions(header http.Header) {
	if a != nil && a.etag != "" {
		header.Set("If-None-Match", a.etag)
	}
	if a != nil && a.date != "" {
		header.Set("If-Modified-Since", a.date)
	}
}

// NewHTTP validates and starts nothing.
func NewHTTP(cfg HTTPConfig, deps HTTPDeps) (*HTTP, error) {
	if err := require.Set("new HTTP source", map[string]any{
		"URL": cfg.URL, "NodeName": cfg.NodeName, "Out": deps.Out, "Client": deps.Client, "Clock": deps.Clock,
		"Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.CheckFrequency <= 0 {
		return nil, errors.New("new HTTP source: CheckFrequency must be positive")
	}
	name := "the URL"
	if u, err := url.Parse(cfg.URL); err == nil {
		name = u.Redacted()
	}
	return &HTTP{cfg: cfg, deps: deps, name: name, adopter: newAdopter(deps.Runtime)}, nil
}

// Run reads the URL at the start and then periodically. It sends the first snapshot after the first
// successful read.
func (h *HTTP) Run(ctx context.Context) error {
	if h.adopter.wait(ctx) != nil {
		return nil
	}
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
	now, err := h.get(ctx)
	if err != nil || now == nil {
		return err
	}
	if !h.last.same(now) {
		if err := h.send(ctx, now.data); err != nil {
			return err
		}
	}
	// Only after it was sent: invalid content must not count as unchanged the next time.
	h.last = now
	return nil
}

// send decodes new content and sends a snapshot.
func (h *HTTP) send(ctx context.Context, data []byte) (err error) {
	var m manifest
	if len(bytes.TrimSpace(data)) > 0 { // empty content has no pods
		if m, err = decode(data); err != nil {
			return fmt.Errorf("read pods: %w", err)
		}
		origin := pod.Origin{Source: pod.SourceHTTP, Location: h.cfg.URL, NodeName: h.cfg.NodeName}
		if err := prepare(&m, origin, false, h.adopter.runs); err != nil {
			return err
		}
		if err := checkUniqueNames(&m); err != nil {
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

// get returns nil if the content is not modified.
func (h *HTTP) get(ctx context.Context) (*response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.cfg.URL, nil)
	if err != nil {
		return nil, errors.New("make request: the URL is not valid") // err has the URL, with its password
	}
	if h.cfg.Header != nil {
		request.Header = h.cfg.Header.Clone()
	}
	h.last.setConditions(request.Header)
	reply, err := h.deps.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	switch reply.StatusCode {
	case http.StatusNotModified:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, fmt.Errorf("get %s: %s", h.name, clip.Text(reply.Status, clip.Name))
	}
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("answer is larger than %d bytes", maxManifest)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", h.name, err)
	}
	return &response{data, reply.Header.Get("ETag"), reply.Header.Get("Last-Modified")}, nil
}

// report logs an error when it first occurs, and when it is resolved. The error may quote the content.
func (h *HTTP) report(err error) {
	err = clip.Error(err, clip.Message)
	switch {
	case err == nil && h.lastError != "":
		h.deps.Log.Info("HTTP source: URL is readable again", "url", h.name)
		h.lastError = ""
	case err != nil && h.lastError != err.Error():
		h.lastError = err.Error()
		h.deps.Log.Error("HTTP source: cannot read pods, keeping the last valid ones", "url", h.name, "err", err)
		if h.deps.OnError != nil {
			h.deps.OnError(h.name, err)
		}
	}
}

func checkUniqueNames(m *manifest) error {
	names := map[string]bool{}
	for name := range m.all() {
		if names[name] {
			return fmt.Errorf("%s is there twice", name)
		}
		names[name] = true
	}
	return nil
}
