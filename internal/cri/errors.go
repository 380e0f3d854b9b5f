package cri

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// callError is a failed call: the operation, and the runtime's error.
type callError struct {
	op  string
	err error
}

func (e *callError) Error() string { return e.op + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// failed wraps err with the operation; it returns nil for nil.
func failed(err error, op string) error {
	if err == nil {
		return nil
	}
	return &callError{op: op, err: err}
}

// errEmptyResponse is for a response without a required field.
var errEmptyResponse = errors.New("the runtime's answer is empty")

// IsNotFound reports whether the runtime does not have the object.
func IsNotFound(err error) bool { return code(err) == codes.NotFound }

// IsUnavailable reports whether the runtime could not be reached.
func IsUnavailable(err error) bool { return code(err) == codes.Unavailable }

// IsDenied reports whether a credential is missing or was refused.
func IsDenied(err error) bool {
	return code(err) == codes.Unauthenticated || code(err) == codes.PermissionDenied
}

// IsUnimplemented reports whether the runtime does not implement the call.
func IsUnimplemented(err error) bool { return code(err) == codes.Unimplemented }

// IsTimeout reports whether the call's deadline passed, here or in the runtime.
func IsTimeout(err error) bool {
	return code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// Text is the runtime's own error as the reference kubelet shows it in events and
// statuses: "rpc error: code = … desc = …", without the operation's name.
func Text(err error) string {
	if err == nil {
		return ""
	}
	var call *callError
	if errors.As(err, &call) {
		return call.err.Error()
	}
	return err.Error()
}

// Description is the runtime's message alone, without gRPC's prefix.
func Description(err error) string {
	if err == nil {
		return ""
	}
	var call *callError
	if errors.As(err, &call) {
		err = call.err
	}
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// PullText is the runtime's error of a failed pull as the reference kubelet shows it: with
// gRPC's prefix only if the code is not Unknown.
func PullText(err error) string {
	if code(err) == codes.Unknown {
		return Description(err)
	}
	return Text(err)
}

func code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	return status.Code(err)
}

// ignoreNotFound makes stop and remove idempotent.
func ignoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// withTimeout adds the request timeout, plus extra, to ctx.
func (c *Client) withTimeout(ctx context.Context, extra time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout+extra)
}
