package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/clip"
)

// ImageStore is the part of CRI that the commands for images need.
type ImageStore interface {
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.Image, error)
	RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error
}

// loadInterval is the time between two lines about a large archive.
const loadInterval = 5 * time.Second

// pipeDelay is how long to wait for the output of a program that has ended: its children may have it open.
const pipeDelay = 2 * time.Second

// LoadImages imports archives of images, in docker's format or OCI's, compressed or not, into the runtime of the node
// that runs. One that cannot be read does not keep others from it. It uses Clock and Out of deps.
func LoadImages(ctx context.Context, cfg Config, deps Deps, store ImageStore, files []string) error {
	s := &Supervisor{cfg: cfg, deps: deps}
	if err := s.checkImageProgram(ctx, store); err != nil {
		return fmt.Errorf("load images: %w", err)
	}
	var problems []error
	for _, file := range files {
		if err := s.load(ctx, file); err != nil {
			problems = append(problems, fmt.Errorf("load %s: %w", file, err))
		}
	}
	return errors.Join(problems...)
}

// checkImageProgram returns an error if ctr must not run as root, or no runtime answers.
func (s *Supervisor) checkImageProgram(ctx context.Context, store ImageStore) error {
	if err := errors.Join(checkRoot(s.cfg), checkDirectories(s.cfg)); err != nil {
		return err
	}
	if _, err := store.ListImages(ctx); err != nil {
		return fmt.Errorf("%w; start the node with `swiftlet up`", err)
	}
	if s.cfg.AnyBundle {
		return nil
	}
	return s.cfg.BundleHashes.Check("ctr", s.cfg.Paths.program("ctr"))
}

func (s *Supervisor) load(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	before, err := s.imagesByDigest(ctx)
	if err != nil {
		return err
	}
	archive := &progressReader{Reader: f, report: s.loadProgress(file, info.Size())}
	problems := clip.NewBuffer(clip.Message)
	command := exec.CommandContext(ctx, s.cfg.Paths.program("ctr"), "--address", s.cfg.Paths.Socket(), "--namespace", "k8s.io", "images", "import", "-")
	command.Stdin, command.Stderr = archive, problems
	command.WaitDelay = pipeDelay
	if err := command.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(problems.Bytes())), "\n")
		if last := strings.TrimPrefix(lines[len(lines)-1], "ctr: "); last != "" { // warnings come first
			return errors.New(last)
		}
		return fmt.Errorf("import: %w", err)
	}
	after, err := s.imagesByDigest(ctx)
	if err != nil {
		return err
	}
	named, err := imagesIn(file) // those that were there before, too
	if err != nil {
		named = nil // a compressed archive
	}
	for name, digest := range after {
		if before[name] != digest {
			if named == nil {
				named = map[string]string{}
			}
			named[name] = digest
		}
	}
	if len(named) == 0 {
		s.progress("%s has only images that the node has", file)
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		s.progress("loaded %s (%s)", name, named[name])
	}
	return nil
}

// loadProgress says how much of an archive that takes long is read.
func (s *Supervisor) loadProgress(file string, size int64) func(int64) {
	said := s.deps.Clock.Now()
	return func(read int64) {
		if now := s.deps.Clock.Now(); now.Sub(said) >= loadInterval {
			said = now
			s.progress("loading %s: %.1f MB of %.1f MB", file, float64(read)/1e6, float64(size)/1e6)
		}
	}
}

// progressReader reports how much it has read.
type progressReader struct {
	io.Reader
	read   int64
	report func(int64)
}

func (r *progressReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += int64(n)
	r.report(r.read)
	return n, err
}

// ListImages writes a table of the images of the node.
func ListImages(ctx context.Context, _ Config, deps Deps, store ImageStore) error {
	all, err := store.ListImages(ctx)
	if err != nil {
		return fmt.Errorf("list images: %w; start the node with `swiftlet up`", err)
	}
	var rows []string
	for _, i := range all {
		names := i.RepoTags
		if len(names) == 0 {
			names = i.RepoDigests
		}
		for _, name := range names {
			rows = append(rows, fmt.Sprintf("%s\t%.12s\t%.1f MB\n", name, strings.TrimPrefix(i.Id, "sha256:"), float64(i.Size)/1e6))
		}
	}
	slices.Sort(rows)
	w := tabwriter.NewWriter(deps.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tID\tSIZE")
	for _, row := range rows {
		fmt.Fprint(w, row)
	}
	return w.Flush()
}

// RemoveImages removes images from the node; of one that has several names, only the name. Containers that run with
// one keep it.
func RemoveImages(ctx context.Context, cfg Config, deps Deps, store ImageStore, names []string) error {
	s := &Supervisor{cfg: cfg, deps: deps}
	if err := s.checkImageProgram(ctx, store); err != nil {
		return fmt.Errorf("remove images: %w", err)
	}
	var problems []error
	for _, name := range names {
		spec := &runtimeapi.ImageSpec{Image: name}
		found, err := store.ImageStatus(ctx, spec, false)
		if err == nil && found == nil {
			err = errors.New("the node does not have it")
		}
		switch {
		case err != nil:
		case len(found.RepoTags) > 1 && slices.Contains(found.RepoTags, name):
			err = s.ctr(ctx, importTimeout, "images", "rm", "--sync", name) // CRI would remove its other names, too
		default:
			err = store.RemoveImage(ctx, spec)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("remove image %s: %w", name, err))
			continue
		}
		s.progress("removed %s", name)
	}
	return errors.Join(problems...)
}
