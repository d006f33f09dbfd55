import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useLocation, useNavigate } from "react-router";

import { api, done } from "../api/client";
import { pathIn } from "../api/zone";

/** The selector of the zone; another zone opens the same page. */
export function ZoneSelect({ zone }: { zone: string }) {
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const zones = useQuery({
    queryKey: ["zones"],
    queryFn: () => done(api.GET("/v1/zones", { params: { query: { limit: 1000 } } })),
    staleTime: 30_000,
  });
  const names = zones.data?.items.map((item) => item.name) ?? [];
  const page = pathname.split("/")[3] ?? "overview";

  return (
    <Select
      aria-label="Zone"
      size="sm"
      w={{ base: 128, xs: 176 }}
      miw={64}
      data={names.includes(zone) ? names : [zone, ...names]}
      value={zone}
      allowDeselect={false}
      searchable={names.length > 8}
      nothingFoundMessage="No zone of that name"
      onChange={(chosen) => chosen !== null && void navigate(pathIn(chosen, page))}
      onDropdownOpen={() => void zones.refetch()}
      comboboxProps={{ width: "max-content", position: "bottom-end" }}
    />
  );
}
