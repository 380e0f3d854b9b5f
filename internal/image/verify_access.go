package image

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Verification configures when a pod needs valid pull credentials for an image that is
// already on the node.
type Verification struct {
	// Dir holds the records of earlier pulls. If it is empty, the puller verifies nothing
	// and records nothing.
	Dir string
	// Policy is the configuration's imagePullCredentialsVerificationPolicy.
	Policy kubelet.ImagePullCredentialsVerificationPolicy
	// Allowlist are the images that the policy NeverVerifyAllowlistedImages trusts: names
	// without tags, or prefixes that end in "/*".
	Allowlist []string
}

// Check returns an error if the policy is unknown.
func (v Verification) Check() error {
	if v.Dir == "" {
		return nil
	}
	known := []kubelet.ImagePullCredentialsVerificationPolicy{
		kubelet.NeverVerify, kubelet.NeverVerifyPreloadedImages, kubelet.NeverVerifyAllowlistedImages, kubelet.AlwaysVerify}
	if !slices.Contains(known, v.Policy) {
		return fmt.Errorf("validate image pull credentials verification: unknown policy %q", v.Policy)
	}
	return nil
}

// required reports whether the policy subjects the image to verification. pulledByKubelet is
// false for preloaded images.
func (v Verification) required(name string, pulledByKubelet bool) bool {
	switch v.Policy {
	case kubelet.NeverVerify:
		return false
	case kubelet.NeverVerifyPreloadedImages:
		return pulledByKubelet
	case kubelet.NeverVerifyAllowlistedImages:
		return !slices.ContainsFunc(v.Allowlist, func(pattern string) bool {
			prefix, wildcard := strings.CutSuffix(pattern, "*")
			return pattern == name || wildcard && strings.HasPrefix(name, prefix)
		})
	}
	return true
}

// mayUse reports whether the pod may use an image that is on the node without a pull. If not,
// the pod pulls the image, which proves its credentials. Unreadable records force a pull too.
func (p *Puller) mayUse(r request, present *runtimeapi.Image) (bool, error) {
	if p.records == nil {
		return true, nil
	}
	verdict := verdictMustAuthenticate
	defer func() { p.meters.Checked.Inc(verdict) }()
	record, pulledByKubelet, err := p.pullRecord(r, present)
	if err != nil {
		verdict = verdictError
		p.log.Warn("verify image access: cannot read pull records, pulling again", "image", r.container.Image, "err", err)
		return false, nil
	}
	name := untagged(r.container.Image)
	if !p.verify.required(name, pulledByKubelet) {
		verdict = verdictPolicyAllowed
		return true, nil
	}
	if record == nil {
		return false, nil
	}
	granted := record.CredentialMapping[name]
	if granted.NodePodsAccessible {
		verdict = verdictRecordFound
		return true, nil
	}
	if len(granted.KubernetesSecrets)+len(granted.KubernetesServiceAccounts) == 0 {
		return false, nil
	}
	credentials, err := r.credentials()
	if err != nil {
		verdict = verdictError
		return false, err
	}
	credential, ok := matchGranted(granted, credentials)
	if ok {
		verdict = verdictRecordFound
	}
	if ok && credential.Secret != nil && len(granted.KubernetesSecrets) < maxRecordedSecrets {
		p.recordAccess(r, present.Id, credential)
	}
	return ok, nil
}

// pullRecord returns the record of the image's pull, and whether a kubelet pulled it. An
// interrupted pull leaves no record but an intent, under any of the image's names.
func (p *Puller) pullRecord(r request, present *runtimeapi.Image) (record *kubelet.ImagePulledRecord, pulledByKubelet bool, err error) {
	record, err = p.records.find(present.Id)
	if err != nil || record != nil {
		return record, record != nil, err
	}
	names := slices.Concat([]string{r.container.Image}, present.RepoTags, present.RepoDigests)
	pulledByKubelet, err = p.records.hasIntent(names...)
	return nil, pulledByKubelet, err
}

// recordAccess records that the credential grants access to the image. A failure to write the
// record costs one pull later.
func (p *Puller) recordAccess(r request, ref string, credential *Credential) {
	if err := p.records.add(untagged(r.container.Image), ref, credential.grant()); err != nil {
		p.log.Warn("record image access: cannot write pull record", "image", r.container.Image, "err", err)
	}
}

// untagged returns an image's name as the user wrote it, without tag and digest.
func untagged(image string) string {
	parsed, err := reference.Parse(image)
	if err != nil {
		return image
	}
	if digested, ok := parsed.(reference.Digested); ok {
		image = strings.TrimSuffix(image, "@"+digested.Digest().String())
	}
	if tagged, ok := parsed.(reference.Tagged); ok {
		image = strings.TrimSuffix(image, ":"+tagged.Tag())
	}
	return image
}

// Verdicts on whether a pod may use an image without a pull: values of a metric's label.
const (
	verdictPolicyAllowed    = "credentialPolicyAllowed"
	verdictRecordFound      = "credentialRecordFound"
	verdictMustAuthenticate = "mustAuthenticate"
	verdictError            = "error"
)

// RecordCounts returns the number of pulls that are recorded on disk as in progress and as done.
func (p *Puller) RecordCounts() (inProgress, done int) {
	if p.records == nil {
		return 0, 0
	}
	return p.records.count()
}

// PruneRecords deletes the pull records of images that are not among the remaining ones, unless a
// record was written after the given time.
func (p *Puller) PruneRecords(remaining []string, before time.Time) {
	if p.records == nil {
		return
	}
	if err := p.records.prune(remaining, before); err != nil {
		p.log.Warn("prune image pull records: failed", "err", err)
	}
}
