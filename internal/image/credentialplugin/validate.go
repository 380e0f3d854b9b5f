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

// versions are those of requests and responses that plugins may speak.
var versions = []string{
	api.SchemeGroupVersion.String(), "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"}

// check collects what is wrong with one provider.
type check struct {
	file, field string
	problems    *[]error
}

func (c check) say(field, format string, args ...any) {
	*c.problems = append(*c.problems, fmt.Errorf("%s: %s%s: %s", c.file, c.field, field, fmt.Sprintf(format, args...)))
}

// validate is what is wrong with a file. named knows the providers of earlier files.
func (d *document) validate(tokens bool, named map[string]string) (problems []error) {
	for i := range d.content.Providers {
		p := &d.content.Providers[i]
		c := check{d.name, fmt.Sprintf("providers[%d].", i), &problems}
		c.name(p.Name)
		if other, ok := named[p.Name]; ok {
			c.say("name", "%q is also the name of a provider in %s", p.Name, other)
		}
		named[p.Name] = d.name
		c.provider(p)
		if p.TokenAttributes == nil {
			continue
		}
		switch {
		case d.version != configVersions[0]:
			c.say("tokenAttributes", "%s does not have it, use %s", d.version, configVersions[0])
		case !tokens:
			c.say("tokenAttributes", "needs the feature gate KubeletServiceAccountTokenForCredentialProviders")
		case p.APIVersion != versions[0]:
			c.say("tokenAttributes", "needs apiVersion %s", versions[0])
		}
		c.field += "tokenAttributes."
		c.tokens(p.TokenAttributes)
	}
	return problems
}

// name must be that of a file.
func (c check) name(name string) {
	switch {
	case name == "":
		c.say("name", "is needed")
	case name == "." || name == ".." || strings.ContainsAny(name, "/ "):
		c.say("name", "%q is no name of a program: it must be neither . nor .., and hold neither / nor spaces", name)
	}
}

func (c check) provider(p *kubelet.CredentialProvider) {
	if !slices.Contains(versions, p.APIVersion) {
		c.say("apiVersion", "must be one of %v, not %q", versions, p.APIVersion)
	}
	if len(p.MatchImages) == 0 {
		c.say("matchImages", "at least one is needed")
	}
	for i, pattern := range p.MatchImages {
		if _, err := url.Parse("https://" + pattern); err != nil {
			c.say(fmt.Sprintf("matchImages[%d]", i), "%v", err)
		}
	}
	switch {
	case p.DefaultCacheDuration == nil:
		c.say("defaultCacheDuration", "is needed")
	case p.DefaultCacheDuration.Duration < 0:
		c.say("defaultCacheDuration", "%v is negative", p.DefaultCacheDuration.Duration)
	}
}

func (c check) tokens(t *kubelet.ServiceAccountTokenAttributes) {
	if t.ServiceAccountTokenAudience == "" {
		c.say("serviceAccountTokenAudience", "is needed")
	}
	switch {
	case t.RequireServiceAccount == nil:
		c.say("requireServiceAccount", "is needed")
	case !*t.RequireServiceAccount && len(t.RequiredServiceAccountAnnotationKeys) > 0:
		c.say("requiredServiceAccountAnnotationKeys", "needs requireServiceAccount to be true")
	}
	known := []kubelet.ServiceAccountTokenCacheType{kubelet.ServiceAccountServiceAccountTokenCacheType, kubelet.TokenServiceAccountTokenCacheType}
	if !slices.Contains(known, t.CacheType) {
		c.say("cacheType", "must be one of %v, not %q", known, t.CacheType)
	}
	seen := map[string]bool{}
	c.keys("requiredServiceAccountAnnotationKeys", t.RequiredServiceAccountAnnotationKeys, seen)
	c.keys("optionalServiceAccountAnnotationKeys", t.OptionalServiceAccountAnnotationKeys, seen)
}

// keys must be those of annotations, each once in both lists.
func (c check) keys(field string, keys []string, seen map[string]bool) {
	for i, key := range keys {
		at := fmt.Sprintf("%s[%d]", field, i)
		for _, wrong := range validation.IsQualifiedName(strings.ToLower(key)) {
			c.say(at, "%q: %s", key, wrong)
		}
		if seen[key] {
			c.say(at, "%q stands here twice", key)
		}
		seen[key] = true
	}
}
