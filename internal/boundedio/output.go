package boundedio

import (
	"errors"
	"os/exec"

	"swiftlet/internal/clip"
)

// Output runs a command and returns its standard output, which may have at most limit bytes: more is an
// error. An *exec.ExitError has the beginning of standard error.
func Output(cmd *exec.Cmd, limit int) ([]byte, error) {
	out, errors := clip.NewBuffer(limit), clip.NewBuffer(clip.Message)
	cmd.Stdout = out
	if cmd.Stderr == nil {
		cmd.Stderr = errors
	}
	err := cmd.Run()
	if exit := exitError(err); exit != nil {
		exit.Stderr = errors.Bytes()
	}
	if err == nil && out.Full() {
		err = &TooLargeError{Name: "output of " + cmd.Path, Limit: int64(limit)}
	}
	return out.Bytes(), err
}

func exitError(err error) *exec.ExitError {
	var exit *exec.ExitError
	errors.As(err, &exit)
	return exit
}

// CombinedOutput runs a command and returns the beginning of its output, at most limit bytes. It drops the
// rest, so it is for output that is shown and not parsed.
func CombinedOutput(cmd *exec.Cmd, limit int) ([]byte, error) {
	out := clip.NewBuffer(limit)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return out.Bytes(), err
}
