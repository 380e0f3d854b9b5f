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

// Verification says when a pod that finds its image on the node must show that it could
// have pulled it.
type Verification struct {
	// Dir holds the records of earlier pulls; empty means that nobody is ever asked, and
	// nothing recorded.
	Dir string
	// Policy is one of the API's (imagePullCredentialsVerificationPolicy).
	Policy kubelet.ImagePullCredentialsVerificationPolicy
	// Allowed are the images that the policy NeverVerifyAllowlistedImages trusts: names
	// without tags, or beginnings of them that end in "/*".
	Allowed []string
}

func (v Verification) validate() error {
	if v.Dir == "" {
		return nil
	}
	known := []kubelet.ImagePullCredentialsVerificationPolicy{
		kubelet.NeverVerify, kubelet.NeverVerifyPreloadedImages, kubelet.NeverVerifyAllowlistedImages, kubelet.AlwaysVerify}
	if !slices.Contains(known, v.Policy) {
		return fmt.Errorf("unknown policy %q for the verification of pull credentials", v.Policy)
	}
	return nil
}

// required reports whether the image, which a kubelet pulled or somebody else brought
// onto the node, is subject to the check.
func (v Verification) required(name string, pulledByUs bool) bool {
	switch v.Policy {
	case kubelet.NeverVerify:
		return false
	case kubelet.NeverVerifyPreloadedImages:
		return pulledByUs
	case kubelet.NeverVerifyAllowlistedImages:
		return !slices.ContainsFunc(v.Allowed, func(pattern string) bool {
			prefix, wildcard := strings.CutSuffix(pattern, "*")
			return pattern == name || wildcard && strings.HasPrefix(name, prefix)
		})
	}
	return true
}

// mayUse reports whether the pod may use an image that is on the node as it is; otherwise
// it has to pull it, which shows whether it can. Where the records cannot be read it has to.
func (p *Puller) mayUse(r request, present *runtimeapi.Image) (bool, error) {
	if p.records == nil {
		return true, nil
	}
	verdict := mustAuthenticate
	defer func() { p.meters.Checked.Inc(verdict) }()
	record, pulledByUs, err := p.known(r, present)
	if err != nil {
		verdict = notKnown
		p.log.Warn("records of image pulls cannot be read, so the image is pulled anew", "image", r.c.Image, "err", err)
		return false, nil
	}
	name := untagged(r.c.Image)
	if !p.verify.required(name, pulledByUs) {
		verdict = policyAllows
		return true, nil
	}
	if record == nil {
		return false, nil
	}
	granted := record.CredentialMapping[name]
	if granted.NodePodsAccessible {
		verdict = recordFound
		return true, nil
	}
	if len(granted.KubernetesSecrets)+len(granted.KubernetesServiceAccounts) == 0 {
		return false, nil
	}
	credentials, err := r.credentials()
	if err != nil {
		verdict = notKnown
		return false, err
	}
	with, ok := admits(granted, credentials)
	if ok {
		verdict = recordFound
	}
	if ok && with.Secret != nil && len(granted.KubernetesSecrets) < mostLearned {
		p.learn(r, present.Id, with)
	}
	return ok, nil
}

// known is what the records say of an image. A pull that was broken off may have brought it
// under any of its names.
func (p *Puller) known(r request, present *runtimeapi.Image) (record *kubelet.ImagePulledRecord, pulledByUs bool, err error) {
	record, err = p.records.find(present.Id)
	if err != nil || record != nil {
		return record, record != nil, err
	}
	names := slices.Concat([]string{r.c.Image}, present.RepoTags, present.RepoDigests)
	pulledByUs, err = p.records.intended(names...)
	return nil, pulledByUs, err
}

// learn records that a credential opens the image. A failure to do so costs a pull later.
func (p *Puller) learn(r request, ref string, with *Credential) {
	if err := p.records.add(untagged(r.c.Image), ref, with.grant()); err != nil {
		p.log.Warn("who may use an image is not recorded", "image", r.c.Image, "err", err)
	}
}

// untagged is an image's name as the user wrote it, without tag and digest.
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

// Verdicts on whether a pod may use an image without a pull, as they are counted.
const (
	policyAllows     = "credentialPolicyAllowed"
	recordFound      = "credentialRecordFound"
	mustAuthenticate = "mustAuthenticate"
	notKnown         = "error"
)

// Recorded is how many pulls are noted on disk as underway and as done.
func (p *Puller) Recorded() (underway, done int) {
	if p.records == nil {
		return 0, 0
	}
	return p.records.count()
}

// Forget drops the records of all images but those that are left, as of a time.
func (p *Puller) Forget(left []string, began time.Time) {
	if p.records == nil {
		return
	}
	if err := p.records.prune(left, began); err != nil {
		p.log.Warn("records of removed images stay", "err", err)
	}
}
