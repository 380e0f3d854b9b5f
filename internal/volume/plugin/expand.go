package plugin

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Expander is a kind whose volumes can be expanded while they are in use.
type Expander interface {
	// Expand expands the mounted volume to size. It is called when the volume is smaller on this
	// node than the PersistentVolume's capacity, and is idempotent. Its error may have a class;
	// without one the expansion is retried.
	Expand(ctx context.Context, r Request, at Result, size resource.Quantity) error
}

// Classes of failures of Expand.
var (
	// ErrInfeasible: the volume can never have that size.
	ErrInfeasible = errors.New("infeasible")
	// ErrInUse: the volume cannot be expanded while it is mounted.
	ErrInUse = errors.New("in use")
	// ErrUncertain: the expansion may still be in progress.
	ErrUncertain = errors.New("uncertain")
)

// WithClass adds a class to an error for errors.Is and does not change its text.
func WithClass(err, class error) error { return classedError{err, class} }

type classedError struct {
	error
	class error
}

func (e classedError) Unwrap() []error { return []error{e.error, e.class} }
