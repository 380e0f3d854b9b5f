package runtime

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// ImageUser is the user of an image's configuration: a number, a name that only the image can
// resolve, or neither, which is root.
type ImageUser struct {
	UID  *int64
	Name string
}

func (u ImageUser) uid() *int64 {
	if u.UID == nil && u.Name == "" {
		return new(int64)
	}
	return u.UID
}

func (u ImageUser) asUser() (*runtimeapi.Int64Value, string) {
	if uid := u.uid(); uid != nil {
		return int64Value(uid), ""
	}
	return nil, u.Name
}

// VerifyNonRoot returns an error if a container with runAsNonRoot would run as root, or may: a
// user name cannot be checked from outside the image.
func VerifyNonRoot(p *v1.Pod, c *v1.Container, image ImageUser) error {
	return why.Because(why.UserInvalid, "", verifyNonRoot(p, c, image))
}

func verifyNonRoot(p *v1.Pod, c *v1.Container, image ImageUser) error {
	sc := effectiveSecurity(p, c)
	if !isTrue(sc.RunAsNonRoot) {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", pod.RefOf(p), c.Name)
	if sc.RunAsUser != nil {
		if *sc.RunAsUser == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
		}
		return nil
	}
	uid := image.uid()
	if uid == nil {
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", image.Name, where)
	}
	if *uid == 0 {
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	}
	if invalid := validation.IsValidUserID(*uid); len(invalid) > 0 {
		return fmt.Errorf("container has runAsNonRoot and image has an invalid user id (%d). (Must be 1-(%d)): %s %s",
			*uid, math.MaxInt32, strings.Join(invalid, "; "), where)
	}
	return nil
}
