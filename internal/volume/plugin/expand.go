package plugin

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Expander is a kind whose volumes can grow while they are in use.
type Expander interface {
	// Expand has the volume, which is up as at says, use all of size. It is called when the
	// volume has less on this node than the PersistentVolume's capacity, and may be repeated. Its
	// error may be of a class: without one it failed for now, and is tried again.
	Expand(ctx context.Context, r Request, at Result, size resource.Quantity) error
}

// Classes of failures of Expand.
var (
	// ErrInfeasible: the volume can never have that size.
	ErrInfeasible = errors.New("infeasible")
	// ErrInUse: the volume cannot grow while it is up.
	ErrInUse = errors.New("in use")
	// ErrUncertain: it may be growing still.
	ErrUncertain = errors.New("uncertain")
)

// Classed gives an error a class, which errors.Is finds, and leaves its text alone.
func Classed(err, class error) error { return classedError{err, class} }

type classedError struct {
	error
	class error
}

func (e classedError) Unwrap() []error { return []error{e.error, e.class} }
