/* What an actor has in its hands, by the names that requests gave. */

#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t *slot(held *list, const char *name, int is_new) {
  for (size_t i = 0; i < MOST_HELD; i++) {
    if (strcmp(list[i].name, name) == 0) return &list[i].handle;
    if (list[i].name[0] == 0 && is_new) {
      snprintf(list[i].name, sizeof list[i].name, "%s", name);
      return &list[i].handle;
    }
  }
  fprintf(stderr, "there is no %s\n", name);
  abort();
}

stanchion_lease lease_of(actor *self, const json_t *request) {
  return *slot(self->leases, label(request, "lease", "lease"), 0);
}

stanchion_claim claim_of(actor *self, const json_t *request) {
  return *slot(self->claims, label(request, "claim", "claim.0"), 0);
}

json_t *keep(actor *self, json_t *request, stanchion_lease lease) {
  int64_t *place = slot(self->leases, label(request, "as", "lease"), 1);
  stanchion_lease_free(*place);
  *place = lease;
  return shown_lease(self, lease);
}

json_t *keep_claims(actor *self, json_t *request, const stanchion_claim *claims, size_t count) {
  json_t *shown = json_array();
  for (size_t i = 0; i < count; i++) {
    char name[80];
    snprintf(name, sizeof name, "%.40s.%zu", label(request, "as", "claim"), i);
    int64_t *place = slot(self->claims, name, 1);
    stanchion_claim_free(*place);
    *place = claims[i];
    json_array_append_new(shown, shown_claim(self, claims[i]));
  }
  return shown;
}
