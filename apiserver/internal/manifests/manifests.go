// Package manifests applies the objects in a directory of files, of any kind that is served, and deletes
// objects whose documents are removed.
package manifests

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

type runtimeObject = runtime.Object

// fieldManager owns the fields that files set.
const fieldManager = "swiftlet-manifests"

// fileAnnotation has the name of the file that an object comes from.
const fileAnnotation = "swiftlet.dev/manifest"

const (
	// quietPeriod combines changes of files that follow each other, such as those of a directory that is copied.
	quietPeriod = 100 * time.Millisecond
	// Failures are retried: a namespace or the kind itself may come later.
	firstRetry, longestRetry = 100 * time.Millisecond, 30 * time.Second
	// replaceRetry is the longest time from the end of a pod to the start of its next version.
	replaceRetry = time.Second
	// quietRetries are failures that are not reported yet, unless the document itself is wrong.
	quietRetries = 4
	// absentKindRetries are failures to find a kind until it counts as deleted. A kind that a
	// CustomResourceDefinition defines is served some time after the start.
	absentKindRetries = 8
	// Reports are limited: a file may have any number of wrong documents, and errors quote them.
	maxProblems, maxMessage = 100, 1024
)

// Problem is a document that is not applied, or an object that is not deleted.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0 if it is unknown
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// Config is what to apply.
type Config struct{ Dir string }

// Deps is what a Directory works with. Report is called with all problems when they have changed.
type Deps struct {
	Client *rest.Config
	Clock  clock.Clock
	Log    *slog.Logger
	Report func([]Problem)
}

// Directory applies the files of a directory.
type Directory struct {
	cfg       Config
	deps      Deps
	objects   dynamic.Interface
	discovery discovery.DiscoveryInterface
	inventory inventory
	// applied has the last content of each object that was applied.
	applied   map[identity][sha256.Size]byte
	failures  map[identity]int // in a row
	replacing bool             // a pod ends that another version replaces
	reported  []Problem
}

// New starts nothing.
func New(cfg Config, deps Deps) (*Directory, error) {
	kube, err := kubernetes.NewForConfig(deps.Client)
	if err != nil {
		return nil, fmt.Errorf("new directory of manifests: %w", err)
	}
	objects, err := dynamic.NewForConfig(deps.Client)
	if err != nil {
		return nil, fmt.Errorf("new directory of manifests: %w", err)
	}
	return &Directory{
		cfg: cfg, deps: deps, objects: objects, discovery: kube.Discovery(), inventory: inventory{client: kube.CoreV1()},
		applied: map[identity][sha256.Size]byte{}, failures: map[identity]int{},
	}, nil
}

// Run applies the directory and its changes until ctx is done.
func (d *Directory) Run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch manifests: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(d.cfg.Dir); err != nil {
		return fmt.Errorf("watch manifests: %w", err)
	}
	retry := firstRetry
	for {
		var again <-chan time.Time
		if d.sync(ctx) {
			retry = firstRetry
		} else {
			if d.replacing {
				retry = min(retry, replaceRetry)
			}
			again = d.deps.Clock.After(retry)
			retry = min(2*retry, longestRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case <-watcher.Events:
			retry = firstRetry
			d.awaitQuiet(ctx, watcher)
		case err := <-watcher.Errors:
			d.deps.Log.Warn("manifests: watch failed, reading all files", "err", err) // changes were lost
		}
	}
}

// awaitQuiet waits until files have not changed for quietPeriod.
func (d *Directory) awaitQuiet(ctx context.Context, watcher *fsnotify.Watcher) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
		case <-d.deps.Clock.After(quietPeriod):
			return
		}
	}
}

// sync applies what has changed and reports whether nothing is left to do.
func (d *Directory) sync(ctx context.Context) (done bool) {
	all, err := read(d.cfg.Dir)
	if err != nil {
		// The files are unknown, so nothing is deleted.
		d.report([]Problem{{File: d.cfg.Dir, Message: err.Error()}})
		return false
	}
	if err := d.inventory.load(ctx); err != nil {
		d.deps.Log.Warn("manifests: read failed", "err", err)
		return false
	}
	if len(all.documents) == 0 && len(d.inventory.entries) == 0 {
		d.report(all.problems)
		return true
	}
	mapper, err := d.mapper()
	if err != nil {
		d.deps.Log.Warn("manifests: discovery failed", "err", err)
		return false
	}
	problems, wanted, done := d.applyAll(ctx, mapper, all)
	pruneProblems, pruned := d.prune(ctx, mapper, wanted, all.broken)
	if ctx.Err() == nil {
		d.report(slices.Concat(all.problems, problems, pruneProblems))
	}
	return done && pruned
}

// report passes problems on if they are not those of the last call.
func (d *Directory) report(problems []Problem) {
	slices.SortFunc(problems, compare)
	problems = problems[:min(len(problems), maxProblems)]
	for i, p := range problems {
		if len(p.Message) > maxMessage {
			problems[i].Message = strings.ToValidUTF8(p.Message[:maxMessage], "") + "…"
		}
	}
	if d.reported != nil && slices.Equal(problems, d.reported) {
		return
	}
	for _, p := range problems {
		if !slices.Contains(d.reported, p) {
			d.deps.Log.Warn("manifests: not applied", "file", p.File, "line", p.Line, "object", p.Object, "err", p.Message)
		}
	}
	d.reported = append([]Problem{}, problems...)
	d.deps.Report(d.reported)
}
