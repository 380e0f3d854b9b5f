package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NotFound says that Docker does not have the container, image or exec.
func NotFound(err error) bool { return errdefs.IsNotFound(err) }

// Conflict says that a name is in use, or that a container's state does not allow the call.
func Conflict(err error) bool { return errdefs.IsConflict(err) }

// Incompatible says that Docker's API is too old, or that its address is wrong: waiting does not help.
func Incompatible(err error) bool {
	return errdefs.IsInvalidArgument(err) || errdefs.IsNotImplemented(err)
}

// Status gives an error the code that a CRI client reads.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		// The text of a wrapped status has its code in the middle.
		return status.Error(s.Code(), strings.ReplaceAll(err.Error(), fmt.Sprintf("rpc error: code = %s desc = ", s.Code()), ""))
	}
	return status.Error(code(err), err.Error())
}

func code(err error) codes.Code {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case client.IsErrConnectionFailed(err):
		return codes.Unavailable
	case errdefs.IsNotFound(err):
		return codes.NotFound
	case errdefs.IsInvalidArgument(err):
		return codes.InvalidArgument
	case errdefs.IsAlreadyExists(err):
		return codes.AlreadyExists
	case errdefs.IsConflict(err), errdefs.IsFailedPrecondition(err):
		return codes.FailedPrecondition
	case errdefs.IsPermissionDenied(err):
		return codes.PermissionDenied
	case errdefs.IsUnauthorized(err):
		return codes.Unauthenticated
	case errdefs.IsNotImplemented(err):
		return codes.Unimplemented
	}
	return codes.Unknown
}
