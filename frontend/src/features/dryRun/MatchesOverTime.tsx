import { useMemo } from "react";

import { Bars } from "../../parts/charts/Bars";
import { whole } from "../../parts/text";
import type { Series } from "./dryRun";

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** How many matched when. */
export function MatchesOverTime({ series }: { series: Series }) {
  const { begins_at: begins, width_s: width, matched, looked_at: looked } = series;
  const times = useMemo(() => {
    const first = begins === null ? 0 : Date.parse(begins) / 1000;
    return matched.map((_, index) => first + index * width);
  }, [begins, matched, width]);
  if (begins === null) return null;
  const sum = matched.reduce((all, one) => all + one, 0);
  return (
    <Bars
      times={times}
      width={width}
      values={matched}
      reading={(at) => `${TIME.format((times[at] ?? 0) * 1000)}: ${whole(matched[at] ?? 0)} of ${whole(looked[at] ?? 0)} matched`}
      label={`Matches over time: ${whole(sum)} in ${whole(matched.length)} spans of ${width} s`}
    />
  );
}
