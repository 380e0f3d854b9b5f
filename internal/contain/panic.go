package contain

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Panic is a panic in work for one pod.
type Panic struct {
	Value any
	// Stack is that of the goroutine that panicked.
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value of the panic if it is an error, such as runtime.Error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call calls f. If f panics, it returns a *Panic.
func Call(f func() error) error {
	_, err := Value(func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Value is Call for a function that returns a value.
func Value[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case *Panic: // of another goroutine, which its owner passes on
			err = cause
		default:
			err = &Panic{Value: cause, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Go calls f in a goroutine of its own. wait returns when f has returned; if f panicked, it panics with the
// *Panic, so that the panic reaches the owner of the goroutine.
func Go(f func()) (wait func()) {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = Call(func() error { f(); return nil })
	}()
	return func() {
		<-done
		if err != nil {
			panic(err)
		}
	}
}

// Reporter logs and counts panics. The zero value does neither.
type Reporter struct {
	Log *slog.Logger
	// Count counts panics by part: admission, worker, volume, stats, eviction, probe, pleg, status or page. It may be nil.
	Count func(part string)
}

// Call is the function Call, and reports a panic of f. attrs identify the pod in the log.
func (r Reporter) Call(part string, f func() error, attrs ...any) error {
	err := Call(f)
	r.Report(part, err, attrs...)
	return err
}

// Report reports err if it is, or wraps, a *Panic.
func (r Reporter) Report(part string, err error, attrs ...any) {
	var panicked *Panic
	if !errors.As(err, &panicked) {
		return
	}
	if r.Count != nil {
		r.Count(part)
	}
	if r.Log != nil {
		r.Log.Error("contained a panic", append(attrs, "part", part, "err", panicked, "stack", string(panicked.Stack))...)
	}
}
