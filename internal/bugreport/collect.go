package bugreport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/require"
)

// Config says what to collect.
type Config struct {
	// Dir is the directory in the archive.
	Dir string
	// Version describes this program.
	Version string
	// Elsewhere says why this machine is not the kubelet's; "" if it is.
	Elsewhere string
	// Root and RunDir are the directories of `swiftlet up`, empty for other kubelets.
	Root, RunDir string
}

// Deps are what a report is made with.
type Deps struct {
	Clock clock.Clock
	// Kubelet reads a path of the kubelet's API, such as /metrics. It returns an error for any status but 200.
	Kubelet func(ctx context.Context, path, query string) ([]byte, error)
	// Node reads the Node from the API server; nil without one.
	Node func(context.Context) ([]byte, error)
	// Progress gets a line for each thing that is read.
	Progress io.Writer
}

// requestTimeout limits each reading. After maxTimeouts of the kubelet's, it is not asked again.
const (
	requestTimeout = 15 * time.Second
	maxTimeouts    = 2
)

// collector fills an archive.
type collector struct {
	cfg      Config
	deps     Deps
	archive  *archive
	redact   *redactor
	timeouts int
	settings settings
	calls    *contain.Calls
}

// Write writes the archive. What cannot be read is in its index; an error is one of writing.
func Write(ctx context.Context, to io.Writer, cfg Config, deps Deps) error {
	if err := require.Set("new report", map[string]any{"Clock": deps.Clock, "Kubelet": deps.Kubelet, "Progress": deps.Progress}); err != nil {
		return err
	}
	now := deps.Clock.Now()
	c := &collector{cfg: cfg, deps: deps, archive: newArchive(to, cfg.Dir, now), redact: newRedactor(), calls: &contain.Calls{}}
	c.settings = defaultSettings(cfg)
	// Pods first: values that are dropped of them are removed from all that follows.
	c.readPods(ctx)
	c.readKubelet(ctx)
	c.readMetrics(ctx)
	c.readLogs(ctx)
	c.readHost(ctx)
	c.progress("done")
	return c.archive.finish(c.about(now))
}

// about is the head of the index.
func (c *collector) about(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Report of a node that Swiftlet runs, made at %s.\n%s\n", now.UTC().Format(time.RFC3339), c.cfg.Version)
	b.WriteString("Left out: Secrets, ConfigMaps, logs of containers, values of environment variables, arguments of commands,\n" +
		"annotations, outputs of probes and hooks. " + redacted + " stands for what was or might be a secret.\n")
	if c.cfg.Elsewhere != "" {
		b.WriteString("Nothing of the node's machine was read: " + c.cfg.Elsewhere + ".\n")
	}
	return b.String() + "\n"
}

func (c *collector) progress(what string) { fmt.Fprintln(c.deps.Progress, "report:", what) }

// add adds a text after removing secrets from it.
func (c *collector) add(name, text string, keep part, note string) {
	c.archive.add(name, []byte(c.redact.text(text)), keep, note)
}

func (c *collector) fail(name string, err error) {
	c.archive.fail(name, "not read: "+c.redact.text(err.Error()))
}

var errNoResponse = errors.New("the kubelet has not responded to earlier requests")

// get reads a path of the kubelet's API.
func (c *collector) get(ctx context.Context, path, query string) ([]byte, error) {
	if c.timeouts >= maxTimeouts {
		return nil, errNoResponse
	}
	c.progress(path)
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	text, err := c.deps.Kubelet(limited, path, query)
	if err != nil && limited.Err() != nil {
		c.timeouts++
	}
	return text, err
}

// addJSON adds JSON after rewriting it.
func (c *collector) addJSON(name string, text []byte, err error, rewrite func([]byte) ([]byte, error), note string) {
	if err == nil {
		text, err = rewrite(text)
	}
	if err != nil {
		c.fail(name, err)
		return
	}
	c.archive.add(name, text, beginning, note)
}
