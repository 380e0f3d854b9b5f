package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// Config is fixed for the life of the agent.
type Config struct {
	// Dir has a directory for each pod. Log files are read only below it.
	Dir string
}

// Deps are the Reader's dependencies.
type Deps struct {
	Clock clock.Clock
	Log   *slog.Logger
}

// Reader reads container logs. Its methods are safe for concurrent use; following a log needs
// Run.
type Reader struct {
	dir     string
	clock   clock.Clock
	log     *slog.Logger
	watcher *watcher
}

// New validates its arguments and opens nothing.
func New(cfg Config, deps Deps) (*Reader, error) {
	if err := require.Set("new log reader", map[string]any{"Dir": cfg.Dir, "Clock": deps.Clock, "Log": deps.Log}); err != nil {
		return nil, err
	}
	return &Reader{dir: cfg.Dir, clock: deps.Clock, log: deps.Log, watcher: newWatcher()}, nil
}

// Run watches the files of followed logs until ctx is done.
func (r *Reader) Run(ctx context.Context) error { return r.watcher.run(ctx) }

// Options say what to read of a log.
type Options struct {
	Tail       *int64    // only the last entries; nil: all
	Limit      *int64    // stop after so many bytes; nil: no limit
	Since      time.Time // skip older entries
	Timestamps bool      // prefix each line with its time
	Stream     Stream    // only this stream; empty: both
	// Ended, if not nil, makes Read follow the log until the channel is closed, which means that
	// the container has exited.
	Ended <-chan struct{}
}

// Read writes the log at path, as the runtime reports it, to w. It writes in large chunks, and
// whenever it has caught up with the container. An empty first write signals that the log
// exists.
func (r *Reader) Read(ctx context.Context, path string, o Options, w io.Writer) error {
	dir, name, err := r.openDir(path)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer dir.Close()
	file, size, err := openIn(dir, name)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	start := int64(0)
	if o.Tail != nil {
		// A file has no more lines than bytes.
		if start, err = tailOffset(ctx, file, 0, size, int(min(*o.Tail, size))); err != nil {
			file.Close()
			return fmt.Errorf("read log: %w", err)
		}
	}
	if _, err := w.Write(nil); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	out := &printer{opts: o, w: bufio.NewWriterSize(w, 32<<10), lineStart: true}
	if o.Ended == nil {
		defer file.Close()
		err = printOnce(ctx, file, start, out)
	} else {
		f := &follower{reader: r, dir: dir, name: name, file: file, offset: start, out: out, ended: o.Ended}
		defer f.close()
		err = f.run(ctx)
	}
	if err != nil && !errors.Is(err, errLimitReached) {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

// printOnce prints the current content of the file, with an incomplete last line.
func printOnce(ctx context.Context, file *os.File, start int64, out *printer) error {
	remaining := int64(-1)
	if out.opts.Tail != nil {
		remaining = *out.opts.Tail
	}
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return err
	}
	for lines := newLineReader(contextReader{ctx, file}); remaining != 0; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		entry, err := ParseEntry(line)
		if err != nil {
			continue // one damaged line must not hide the others
		}
		if err := out.print(entry); err != nil {
			return err
		}
		remaining--
	}
	return out.flush()
}
