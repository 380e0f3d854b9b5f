package standalone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"swiftlet/internal/clip"
	"swiftlet/internal/restoration"
)

// Backup writes the store of the node's API server and its keys to a new file. The node may run. It uses Config's
// Paths, API, BundleHashes and AnyBundle, and Out of deps.
func Backup(ctx context.Context, cfg Config, deps Deps, file string) error {
	s := &Supervisor{cfg: cfg, deps: deps}
	if err := s.checkStoreProgram(); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return s.onStore(ctx, "backup", file)
}

// Restore replaces the store and the keys by those of a backup. The node must not run; pods that --keep has left
// follow the restored objects when it starts.
func Restore(ctx context.Context, cfg Config, deps Deps, file string) error {
	s := &Supervisor{cfg: cfg, deps: deps}
	if err := s.checkStoreProgram(); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	lock, err := s.acquireLock()
	if err != nil {
		return fmt.Errorf("restore %s: stop the node first, with `swiftlet down`: %w", file, err)
	}
	defer s.releaseLock(lock)
	if err := cfg.Paths.makeDirs(); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	return s.onStore(ctx, "restore", file)
}

// checkStoreProgram returns an error if the program must not run as root.
func (s *Supervisor) checkStoreProgram() error {
	if err := errors.Join(checkRoot(s.cfg), checkDirectories(s.cfg)); err != nil {
		return err
	}
	if s.cfg.AnyBundle {
		return nil
	}
	return s.cfg.BundleHashes.Check("api/"+apiServerProgram, s.cfg.API.program(apiServerProgram))
}

// storeGrace is how long the program may take to end after SIGTERM.
const storeGrace = 10 * time.Second

// finishRestore completes a restore that was interrupted, before anything reads the keys.
func (s *Supervisor) finishRestore() error {
	data := s.cfg.Paths.apiData()
	if _, err := os.Lstat(data); errors.Is(err, fs.ErrNotExist) {
		return nil // there was never an API server
	}
	lock, err := restoration.Open(restoration.Dirs{Data: data, PKI: filepath.Dir(s.cfg.Paths.pki("x"))})
	if errors.Is(err, restoration.ErrLocked) {
		return nil // an API server that is being killed, which has completed the restore when it started
	}
	if err != nil {
		return err
	}
	return lock.Close() // the API server opens it again
}

// onStore runs a subcommand of the API server's program, which shows its progress.
func (s *Supervisor) onStore(ctx context.Context, subcommand, file string) error {
	problems := clip.NewBuffer(clip.Message)
	command := exec.CommandContext(ctx, s.cfg.API.program(apiServerProgram), subcommand, file,
		"--data-dir="+s.cfg.Paths.apiData(), "--pki-dir="+filepath.Dir(s.cfg.Paths.pki("x")))
	command.Stdout, command.Stderr = s.deps.Out, problems
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = storeGrace
	// It ends with this process, so that no `swiftlet up` starts beside it. The kernel kills it when the thread ends
	// that has started it: this one is kept.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(problems.Bytes()) > 0 {
		return errors.New(strings.TrimSpace(strings.TrimPrefix(string(problems.Bytes()), apiServerProgram+": ")))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", subcommand, file, err)
	}
	return nil
}
