package credentialplugin

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubelet "k8s.io/kubelet/config/v1"
	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// versions are the supported versions of requests and responses.
var versions = []string{
	api.SchemeGroupVersion.String(), "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"}

// check collects the problems of one provider.
type check struct {
	file, field string
	problems    *[]error
}

func (c check) errorf(field, format string, args ...any) {
	*c.problems = append(*c.problems, fmt.Errorf("%s: %s%s: %s", c.file, c.field, field, fmt.Sprintf(format, args...)))
}

// validate returns the problems of a file. definedIn holds the providers of earlier files.
func (d *document) validate(tokens bool, definedIn map[string]string) (problems []error) {
	for i := range d.content.Providers {
		p := &d.content.Providers[i]
		c := check{d.name, fmt.Sprintf("providers[%d].", i), &problems}
		c.name(p.Name)
		if other, ok := definedIn[p.Name]; ok {
			c.errorf("name", "%q is also the name of a provider in %s", p.Name, other)
		}
		definedIn[p.Name] = d.name
		c.provider(p)
		if p.TokenAttributes == nil {
			continue
		}
		switch {
		case d.version != configVersions[0]:
			c.errorf("tokenAttributes", "%s does not have it, use %s", d.version, configVersions[0])
		case !tokens:
			c.errorf("tokenAttributes", "needs the feature gate KubeletServiceAccountTokenForCredentialProviders")
		case p.APIVersion != versions[0]:
			c.errorf("tokenAttributes", "needs apiVersion %s", versions[0])
		}
		c.field += "tokenAttributes."
		c.tokens(p.TokenAttributes)
	}
	return problems
}

// name checks a plugin's name, which is a file name.
func (c check) name(name string) {
	switch {
	case name == "":
		c.errorf("name", "is required")
	case name == "." || name == ".." || strings.ContainsAny(name, "/ "):
		c.errorf("name", "%q is not a valid program name: it must not be . or .., nor contain / or spaces", name)
	}
}

func (c check) provider(p *kubelet.CredentialProvider) {
	if !slices.Contains(versions, p.APIVersion) {
		c.errorf("apiVersion", "must be one of %v, not %q", versions, p.APIVersion)
	}
	if len(p.MatchImages) == 0 {
		c.errorf("matchImages", "at least one is required")
	}
	for i, pattern := range p.MatchImages {
		if _, err := url.Parse("https://" + pattern); err != nil {
			c.errorf(fmt.Sprintf("matchImages[%d]", i), "%v", err)
		}
	}
	switch {
	case p.DefaultCacheDuration == nil:
		c.errorf("defaultCacheDuration", "is required")
	case p.DefaultCacheDuration.Duration < 0:
		c.errorf("defaultCacheDuration", "%v is negative", p.DefaultCacheDuration.Duration)
	}
}

func (c check) tokens(t *kubelet.ServiceAccountTokenAttributes) {
	if t.ServiceAccountTokenAudience == "" {
		c.errorf("serviceAccountTokenAudience", "is required")
	}
	switch {
	case t.RequireServiceAccount == nil:
		c.errorf("requireServiceAccount", "is required")
	case !*t.RequireServiceAccount && len(t.RequiredServiceAccountAnnotationKeys) > 0:
		c.errorf("requiredServiceAccountAnnotationKeys", "needs requireServiceAccount to be true")
	}
	known := []kubelet.ServiceAccountTokenCacheType{kubelet.ServiceAccountServiceAccountTokenCacheType, kubelet.TokenServiceAccountTokenCacheType}
	if !slices.Contains(known, t.CacheType) {
		c.errorf("cacheType", "must be one of %v, not %q", known, t.CacheType)
	}
	seen := map[string]bool{}
	c.keys("requiredServiceAccountAnnotationKeys", t.RequiredServiceAccountAnnotationKeys, seen)
	c.keys("optionalServiceAccountAnnotationKeys", t.OptionalServiceAccountAnnotationKeys, seen)
}

// keys checks annotation keys, which must be unique across both lists.
func (c check) keys(field string, keys []string, seen map[string]bool) {
	for i, key := range keys {
		at := fmt.Sprintf("%s[%d]", field, i)
		for _, wrong := range validation.IsQualifiedName(strings.ToLower(key)) {
			c.errorf(at, "%q: %s", key, wrong)
		}
		if seen[key] {
			c.errorf(at, "%q is a duplicate", key)
		}
		seen[key] = true
	}
}
