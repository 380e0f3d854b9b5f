package why

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os/exec"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"swiftlet/internal/pod"
)

// Of returns the class and the object of an error from its type, never from its text. An error that has the
// method Why classifies itself.
func Of(err error) (Class, string) {
	if err == nil {
		return Unclassified, ""
	}
	var known interface{ Why() (Class, string) }
	if errors.As(err, &known) {
		return known.Why()
	}
	if all := utilerrors.Aggregate(nil); errors.As(err, &all) && len(all.Errors()) > 0 {
		return Of(all.Errors()[0])
	}
	if errors.As(err, new(*pod.WaitError)) {
		return WaitsForDevice, ""
	}
	if class, object := ofAPIServer(err); class != Unclassified {
		return class, object
	}
	switch code := codeOf(err); {
	case code == codes.Unavailable:
		return RuntimeUnavailable, ""
	case code == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return Timeout, ""
	case errors.Is(err, exec.ErrNotFound):
		return ProgramMissing, programOf(err)
	case errors.Is(err, syscall.EBUSY):
		return DeviceBusy, ""
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return NoSpace, ""
	}
	return Unclassified, pathOf(err)
}

// textOf is the error as a user sees it elsewhere: another program's own words, or the message in the pod's status.
func textOf(err error) string {
	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) && answer.GRPCStatus().Message() != "" {
		return answer.GRPCStatus().Message()
	}
	var shown interface{ Waiting() pod.Waiting }
	if errors.As(err, &shown) && shown.Waiting().Message != "" {
		return shown.Waiting().Message
	}
	return err.Error()
}

// ofAPIServer classifies the API server's errors and failures to reach it.
func ofAPIServer(err error) (Class, string) {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		s := answer.Status()
		switch s.Reason {
		case metav1.StatusReasonNotFound:
			return ObjectNotFound, objectOf(s.Details)
		case metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized:
			return ObjectForbidden, objectOf(s.Details)
		case metav1.StatusReasonServiceUnavailable, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonInternalError:
			return APIServerUnreachable, ""
		}
	}
	// Of what steps call, only the API server is asked over HTTP without a class of its own.
	if errors.As(err, new(*url.Error)) && !errors.Is(err, context.Canceled) {
		return APIServerUnreachable, ""
	}
	return Unclassified, ""
}

// kindsOf are the kinds of objects that steps read, by their resource.
var kindsOf = map[string]string{
	"secrets": "Secret", "configmaps": "ConfigMap", "secret": "Secret", "configmap": "ConfigMap", "persistentvolumeclaims": "PersistentVolumeClaim",
	"persistentvolumes": "PersistentVolume", "serviceaccounts": "ServiceAccount", "runtimeclasses": "RuntimeClass",
	"resourceclaims": "ResourceClaim", "csidrivers": "CSIDriver", "volumeattachments": "VolumeAttachment", "nodes": "Node",
}

func objectOf(d *metav1.StatusDetails) string {
	if d == nil {
		return ""
	}
	kind := d.Kind
	if known, ok := kindsOf[strings.ToLower(kind)]; ok {
		kind = known
	}
	return strings.TrimSpace(kind + " " + d.Name)
}

func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	return status.Code(err)
}

func programOf(err error) string {
	if failed := (*exec.Error)(nil); errors.As(err, &failed) {
		return failed.Name
	}
	return ""
}

func pathOf(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Path
	}
	return ""
}
